package backstage

import (
	"math/rand/v2"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// ending is how a delivery's time with this worker ended.
type ending struct {
	how    how
	err    error          // the handler's, or what is wrong
	wait   time.Duration  // asked for by RetryAfter or Snooze
	detail string         // a stack
	guard  string         // who skipped
	next   []provider.Job // of a done run
}

// how a delivery's time with this worker ended.
type how int

const (
	done         how = iota // the handler returned nil
	skipped                 // a guard or the handler said Skip
	failed                  // an error, unclassified
	timedOut                // an error after the deadline
	panicked                // a panic
	exited                  // runtime.Goexit
	failedWait              // RetryAfter
	permanent               // Permanent
	snoozed                 // Snooze
	invalidNext             // a next job could not be made
	undecodable             // the payload is not the task's message
	noHandler               // nobody here knows the task
	tooNew                  // the record needs a newer version
	expired                 // it did not start in time
	crashed                 // its workers died, again and again
	suspectWaits            // another suspect runs here
	startUnknown            // a suspect whose start is to be put on record first
	stopped                 // the worker stops
	leaseLost               // the job is no longer ours
)

// verb is what is done with a delivery.
type verb int

const (
	verbAck verb = iota
	verbRetry
	verbDead
	verbRelease
	verbLeave // nothing: it is not ours any more
)

// settlement is what becomes of a delivery. It is handed down by value through all
// of settling, so what only failures have is apart.
type settlement struct {
	verb    verb
	next    []provider.Job    // of verbAck
	again   *provider.Again   // of verbRetry
	failure *provider.Failure // of verbDead
	parked  error             // why, of a verbRetry that parks
}

// settling is a delivery and what decides about it.
type settling struct {
	job    *provider.Job
	policy Policy
	now    time.Time
	worker string
}

// settle decides what becomes of a delivery. This is the settlement table.
func settle(e ending, s settling) settlement {
	switch e.how {
	case done:
		return settlement{verb: verbAck, next: e.next}
	case skipped:
		return settlement{verb: verbAck}

	case failed:
		return s.retry(e, provider.ClassFailed, s.backoff())
	case timedOut:
		return s.retry(e, provider.ClassTimeout, s.backoff())
	case panicked:
		return s.retry(e, provider.ClassPanic, s.backoff())
	case exited:
		return s.retry(e, provider.ClassExit, s.backoff())
	case failedWait:
		return s.retry(e, provider.ClassFailed, e.wait)

	case permanent, invalidNext:
		return s.dead(e, provider.ClassPermanent, s.attempt())
	case undecodable:
		return s.dead(e, provider.ClassUndecodable, 0)
	case expired:
		return s.dead(e, provider.ClassExpired, 0)
	case crashed:
		return s.dead(e, provider.ClassCrashed, 0)

	case snoozed:
		if s.tooOld(e.wait) {
			return s.dead(e, provider.ClassTooOld, 0)
		}
		return again(provider.SnoozedAgain, e.wait)
	case noHandler, tooNew:
		if s.tooOld(0) {
			return s.dead(e, provider.ClassUnknownTask, 0)
		}
		return parked(e, min(s.park(), s.age()))
	case suspectWaits:
		return parked(e, s.aside())
	case startUnknown:
		return again(provider.StartedAgain, 0)

	case stopped:
		return settlement{verb: verbRelease}
	default: // leaseLost
		return settlement{verb: verbLeave}
	}
}

// retry gives a failed run another one, while attempts are left and the job is
// not too old.
func (s settling) retry(e ending, class string, wait time.Duration) settlement {
	switch {
	case int(s.attempt()) >= s.policy.MaxAttempts:
		return s.dead(e, provider.ClassExhausted, s.attempt())
	case s.tooOld(wait):
		return s.dead(e, provider.ClassTooOld, s.attempt())
	}
	return settlement{verb: verbRetry, again: &provider.Again{
		Why: provider.FailedAgain, After: wait, Failure: *s.failure(e, class, s.attempt())}}
}

func (s settling) dead(e ending, class string, attempt int32) settlement {
	return settlement{verb: verbDead, failure: s.failure(e, class, attempt)}
}

func (s settling) failure(e ending, class string, attempt int32) *provider.Failure {
	f := &provider.Failure{At: s.now, Class: class, Worker: s.worker, Attempt: attempt, Detail: e.detail}
	if e.err != nil {
		f.Message = e.err.Error()
	}
	return f
}

func again(why provider.Why, after time.Duration) settlement {
	return settlement{verb: verbRetry, again: &provider.Again{Why: why, After: after}}
}

func parked(e ending, after time.Duration) settlement {
	st := again(provider.ParkedAgain, after)
	st.parked = e.err
	return st
}

// attempt is the number of the run, counted by failures.
func (s settling) attempt() int32 { return s.job.Counters.Failures + 1 }

// backoff draws the wait before the next attempt.
func (s settling) backoff() time.Duration { return s.policy.Backoff.wait(int(s.attempt())) }

// park is how long a job is put aside that nobody here can run. It grows by a
// second each time and does not double: in a deploy where half of the workers know
// the task, a job that the others got ten times in a row waits for a minute in
// all, and not for a quarter of an hour.
func (s settling) park() time.Duration {
	return time.Duration(min(int64(s.job.Counters.Parks)+1, 300)) * time.Second
}

// aside is how long a suspect waits that cannot start beside another. Half of it is
// drawn: suspects that were put aside together must not come back together, or all
// but one would be put aside again.
func (s settling) aside() time.Duration {
	half := growing(100*time.Millisecond, 5*time.Second, s.job.Counters.Parks) / 2
	return half + rand.N(half+1)
}

// age is how long the job may still be retried.
func (s settling) age() time.Duration {
	return s.job.FirstDue.Add(s.policy.MaxAge).Sub(s.now)
}

// tooOld reports whether a run after a wait would come after max age.
func (s settling) tooOld(wait time.Duration) bool { return wait > s.age() || s.age() <= 0 }
