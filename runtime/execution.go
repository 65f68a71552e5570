package backstage

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// formatKnown is the highest record format that can be run.
const formatKnown = provider.Format

var (
	errGoexit  = errors.New("the handler called runtime.Goexit")
	errNoTask  = errors.New("no handler of this worker knows the task")
	errTooNew  = errors.New("the job needs a newer version of backstage")
	errExpired = errors.New("the job did not start in time")
	errCrashed = errors.New("workers that ran the job died, again and again")
	errWaits   = errors.New("workers that ran the job died, and another such job runs here: one at a time")
)

// jobKey tells jobs apart in this process: two enqueues with one id are two jobs.
type jobKey struct {
	id       string
	enqueued int64
}

func keyOf(j *provider.Job) jobKey { return jobKey{j.ID, j.Enqueued.UnixNano()} }

// execution is a delivery's time with this worker.
type execution struct {
	delivery  provider.Delivery
	job       *provider.Job
	key       jobKey
	task      *registered
	policy    Policy
	run       Run
	context   runContext      // of its handler
	carried   carried         // jobs that its settlement stores elsewhere first
	forgotten <-chan struct{} // closed when no lender will promote it again; nil if none would
	waited    bool            // before it could run: its lease may have run out
	isLost    atomic.Bool     // the lease is known to be lost

	// Under shift.mu.
	index    int             // in shift.active
	lost     <-chan struct{} // what the delivery's Lost returns, once that is asked
	watch    *watch          // of lost
	inSlot   bool            // occupies a slot
	handling bool            // its handler runs
	stuck    bool            // reported as stuck
	suspect  bool            // counted in shift.suspects
	doubted  bool            // cancelled because nobody confirmed its lease
	extended time.Time       // when the lease was last known to hold
	deadline time.Time       // of its handler
	ended    chan struct{}   // closed when it is over, if a redelivery waits
	after    settlement      // what a redelivery of the same state is to get, once ended is closed
	afterOK  bool            // whether it is to get that, in place of a run
}

func (s *shift) newExecution(d provider.Delivery, now time.Time) *execution {
	job := d.Job()
	e := &execution{
		delivery: d,
		job:      job,
		key:      keyOf(job),
		task:     s.byName[job.Task],
		inSlot:   true,
		extended: now,
	}
	if s.facts.Death != provider.LeaseOnRecord {
		e.lost = d.Lost() // otherwise not before a heartbeat is due
	}
	if e.task != nil {
		e.policy = e.task.Policy
	}
	e.policy = e.policy.over(job.Overrides)
	return e
}

// live is all of a delivery's time with this worker.
func (s *shift) live(e *execution) {
	if s.remembered(e) {
		return
	}
	if end, run := s.judgeBefore(e); !run {
		s.finish(e, end)
		return
	}
	returned := false
	defer func() {
		if !returned { // Goexit ends this goroutine: the rest happens in another
			end := ending{how: exited, err: errGoexit, detail: string(debug.Stack())}
			s.pool.Go(func() { s.finish(e, end) })
		}
	}()
	end := s.call(e)
	returned = true
	s.finish(e, end)
}

// remembered settles a redelivery by what became of an earlier run of the same
// job in this process, which it waits for if it still runs. It reports whether
// that was possible; otherwise the job is now the one that runs.
func (s *shift) remembered(e *execution) bool {
	for {
		s.mu.Lock()
		earlier := s.running[e.key]
		if earlier == nil {
			s.running[e.key] = e
			e.forgotten = s.promoted[e.key]
			s.countSuspect(e)
			s.mu.Unlock()
			break
		}
		if earlier.ended == nil {
			earlier.ended = make(chan struct{})
		}
		s.uncountSuspect(e) // it does not run while it waits
		e.waited = true
		s.mu.Unlock()
		select {
		case <-earlier.ended:
		case <-s.handlers.Done():
			s.finish(e, ending{how: stopped})
			return true
		}
		if earlier.afterOK && earlier.job.Counters.Stamp() == e.job.Counters.Stamp() {
			s.conclude(e, earlier.after)
			return true
		}
	}
	if after, ok := s.recent.take(e.key, e.job.Counters.Stamp()); ok {
		s.conclude(e, after)
		return true
	}
	return false
}

// judgeBefore decides whether a delivery is to be run, and how it ends if not.
func (s *shift) judgeBefore(e *execution) (end ending, run bool) {
	job := e.job
	s.awaitForgotten(e)
	if e.isLost.Load() { // while it waited
		return ending{how: leaseLost}, false
	}
	if job.Format > formatKnown || len(job.Requires) > 0 {
		return ending{how: tooNew, err: errTooNew}, false
	}
	s.refreshClaim(e)
	end, convicted := s.convict(job.Counters)
	switch {
	case convicted:
		return end, false
	case e.task == nil:
		return ending{how: noHandler, err: fmt.Errorf("%w: %s", errNoTask, job.Task)}, false
	case neverRan(job.Counters) && job.Expires > 0 && time.Since(job.FirstDue) > job.Expires:
		return ending{how: expired, err: errExpired}, false
	}
	message, err := e.task.decode(job.Payload)
	if err != nil {
		return ending{how: undecodable, err: err}, false
	}
	e.run = Run{job: job, worker: s.cfg.Name, maxAttempts: e.policy.MaxAttempts, message: message}
	if s.suspected(job.Counters) {
		if end, run := s.alone(e); !run {
			return end, false
		}
	}
	if e.waited && s.overdue(e) {
		return ending{how: stopped}, false
	}
	return ending{}, true
}

// refreshClaim keeps a claim that holds until done. It is no more than a help: a
// store that does not answer must not keep the job from its run.
func (s *shift) refreshClaim(e *execution) {
	if !e.job.Dedupe.UntilDone {
		return
	}
	ctx, cancel := context.WithTimeout(s.settling, s.cfg.Lease/3)
	defer cancel()
	s.broker.refreshed(ctx, e.job, e.policy.MaxAge, 0)
}

func neverRan(c provider.Counters) bool { return c.Failures+c.Snoozes+c.Crashes == 0 }

// call runs the handler, with its interceptors.
func (s *shift) call(e *execution) (end ending) {
	end = ending{how: exited, err: errGoexit} // unless it returns or panics
	started := time.Now()
	ctx := &e.context
	ctx.parent, ctx.run, ctx.deadline = s.handlers, &e.run, started.Add(e.policy.Timeout)
	defer ctx.release()

	s.mu.Lock()
	e.handling, e.deadline = true, ctx.deadline
	s.mu.Unlock()
	if e.isLost.Load() {
		ctx.cancel(ErrLeaseLost)
	}
	s.logRun(e)
	if s.cfg.Observer != nil {
		s.observeStart(e, started)
	}
	defer func() {
		if p := recover(); p != nil {
			end = ending{how: panicked, err: fmt.Errorf("panic: %v", p), detail: string(debug.Stack())}
		}
		s.returned(e, end, started)
	}()
	err := e.task.call(ctx, &e.run)
	if err == nil {
		return judge(nil, nil)
	}
	_ = err.Error() // one that panics, as a nil pointer in an error may, is the handler's panic
	return judge(err, context.Cause(ctx))
}

func (s *shift) observeStart(e *execution, started time.Time) {
	s.cfg.Observer(RunStarted{Job: e.run.Info(), Waited: started.Sub(e.job.FirstDue)})
}

// judge tells by the handler's error and the state of its context how a run
// ended. What the handler said plainly counts; any other error of a run that was
// cut off counts as nothing.
func judge(err, cause error) ending {
	if err == nil {
		return ending{how: done}
	}
	var (
		skip       *skipError
		perm       *permanentError
		snooze     *snoozeError
		retryAfter *retryAfterError
	)
	switch {
	case errors.As(err, &skip):
		return ending{how: skipped, err: errors.New(skip.reason), guard: skip.guard}
	case errors.As(err, &perm):
		return ending{how: permanent, err: err}
	case errors.As(err, &snooze):
		return ending{how: snoozed, err: err, wait: snooze.wait}
	case errors.Is(cause, ErrLeaseLost):
		return ending{how: leaseLost, err: err}
	case errors.Is(cause, ErrShutdown):
		return ending{how: stopped, err: err}
	case errors.As(err, &retryAfter):
		return ending{how: failedWait, err: err, wait: retryAfter.wait}
	case errors.Is(cause, ErrTimeout):
		return ending{how: timedOut, err: err}
	}
	return ending{how: failed, err: err}
}

// info is what a handler can know of its job.
func (s *shift) info(e *execution) Info { return infoOf(e.job, s.cfg.Name, e.policy.MaxAttempts) }
