package memory

import (
	"context"
	"errors"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// delivery is one run of a job. The number of its run is its fence: the job has
// that of its newest run.
type delivery struct {
	subscription *subscription
	entry        *entry
	job          *provider.Job
	run          uint64
	lease        time.Time
	slot         int // in queue.running
	kind         kind
	settled      bool
	lost         chan struct{} // nil until somebody asks
}

// kind is the verb of a settlement.
type kind uint8

const (
	unsettled kind = iota
	acked
	retried
	deadLettered
	released
)

// Job returns the job as it was when this run started.
func (d *delivery) Job() *provider.Job { return d.job }

// Lost returns a channel that is closed when the job is taken over.
func (d *delivery) Lost() <-chan struct{} {
	store := d.subscription.session.store
	store.mu.Lock()
	defer store.mu.Unlock()
	if d.lost == nil {
		d.lost = make(chan struct{})
		if !d.ours() && !d.settled {
			close(d.lost)
		}
	}
	return d.lost
}

// ours says that no newer run has taken the job.
func (d *delivery) ours() bool { return d.entry.run == d.run }

// lose ends the run for its worker, because another takes over.
func (d *delivery) lose() {
	d.entry.queue.running.remove(d)
	d.entry.run = 0
	if d.lost != nil {
		close(d.lost)
	}
}

// extend starts the lease again, if the run is still ours.
func (d *delivery) extend(ctx context.Context, now time.Time) error {
	switch {
	case d.subscription.gate.err != nil:
		return d.subscription.gate.err
	case d.settled:
		return provider.ErrSettled
	case !d.ours():
		return provider.ErrLeaseLost
	case ctx.Err() != nil:
		return ctx.Err()
	}
	d.lease = now.Add(d.subscription.lease)
	d.entry.queue.running.fix(d)
	return nil
}

// begin checks that a settlement may go on, and fixes its kind. The caller has the
// lock.
func (d *delivery) begin(ctx context.Context, k kind) error {
	switch {
	case d.subscription.session.dropped:
		return d.subscription.gate.err
	case d.settled || d.kind != unsettled && d.kind != k:
		return provider.ErrSettled
	case d.subscription.gate.err != nil:
		return d.subscription.gate.err
	}
	d.kind = k
	if !d.ours() {
		return &provider.LostError{Stored: provider.OutcomeRefused}
	}
	return ctx.Err()
}

// end puts the settlement on record.
func (d *delivery) end() {
	d.settled = true
	d.entry.queue.running.remove(d)
	d.entry.run = 0
}

// Ack ends the job and stores the next ones, all in one step. It waits, until ctx
// ends, while the key of a next job has a pending claim of another's.
func (d *delivery) Ack(ctx context.Context, next []provider.Job) error {
	s := d.subscription.session
	for i := range next {
		if err := s.acceptable(&next[i]); err != nil {
			return err
		}
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	now, err := d.beginAck(ctx, next)
	if err != nil {
		return err
	}
	s.store.advance(now)
	if d.job.Dedupe.UntilDone {
		s.unclaim(d.job) // a next job may have the same key
	}
	for i := range next {
		s.acceptNext(&next[i], now)
	}
	d.end()
	d.entry.queue.leave(d.entry, now)
	return nil
}

// beginAck returns when no key of a next job is pending for another one.
func (d *delivery) beginAck(ctx context.Context, next []provider.Job) (now time.Time, err error) {
	s := d.subscription.session
	for {
		if err := d.begin(ctx, acked); err != nil {
			return now, err
		}
		now = time.Now()
		pending := s.pending(next, now)
		if pending == nil {
			return now, nil
		}
		if err := s.awaitClaim(ctx, &d.subscription.gate, pending); err != nil {
			return now, err
		}
	}
}

// pending returns a claim that keeps one of the jobs waiting, nil if there is none.
func (s *session) pending(next []provider.Job, now time.Time) *claim {
	for i := range next {
		if c := s.rival(&next[i], now); c != nil && !c.confirmed {
			return c
		}
	}
	return nil
}

// acceptNext stores a next job, unless another job has its key.
func (s *session) acceptNext(j *provider.Job, now time.Time) {
	if s.rival(j, now) == nil {
		s.claim(j, now)
		s.accept(j, s.store.queue(j.Queue), now)
	}
}

var errRetry = errors.New("retry: the provider's own Delays are not in use, and it retries nothing without")

// Retry makes the job ready again after its wait: one with an ordering key in its
// place, while the later ones of the key wait, any other at the end of its queue.
func (d *delivery) Retry(ctx context.Context, again provider.Again) error {
	s := d.subscription.session
	if !s.ownDelays() {
		return errRetry
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if err := d.begin(ctx, retried); err != nil {
		return err
	}
	now := time.Now()
	s.store.advance(now)
	d.end()
	e := d.entry
	job := d.job.After(again)
	job.Delay = 0
	e.job = &job
	switch {
	case again.After > 0:
		s.store.own.hold(e, now.Add(again.After), now)
	case e.line != nil:
		e.queue.resume(e, now)
	default:
		e.queue.enter(e, now)
	}
	return nil
}

// DeadLetter moves the job to the dead letters and frees its claim and its key, in
// one step. It returns provider.ErrDeadFull, and settles nothing, if there is no room.
func (d *delivery) DeadLetter(ctx context.Context, f provider.Failure) error {
	s := d.subscription.session
	full, err := d.deadLetter(ctx, f)
	if full {
		s.provider.Events.Emit(provider.Event{
			Provider: s.name, Kind: provider.Degraded, Queue: d.job.Queue,
			Message: "there is no room for more dead letters", Err: err,
		})
	}
	return err
}

// deadLetter reports also whether it is the first that finds no room.
func (d *delivery) deadLetter(ctx context.Context, f provider.Failure) (firstFull bool, err error) {
	s := d.subscription.session
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if err := d.begin(ctx, deadLettered); err != nil {
		return false, err
	}
	if full, first := s.store.dead.full(); full {
		return first, provider.ErrDeadFull
	}
	now := time.Now()
	d.end()
	dead := d.job.Dead(f)
	s.store.dead.add(provider.DeadLetter{
		Queue: dead.Queue, At: now.Round(0), Failure: dead.History[len(dead.History)-1], Job: dead,
	})
	d.entry.queue.dead++
	s.unclaim(d.job)
	d.entry.queue.leave(d.entry, now)
	return false, nil
}

// Release makes the job ready at once, where it was before.
func (d *delivery) Release(ctx context.Context) error {
	store := d.subscription.session.store
	store.mu.Lock()
	defer store.mu.Unlock()
	if err := d.begin(ctx, released); err != nil {
		return err
	}
	d.end()
	d.entry.queue.resume(d.entry, time.Now())
	return nil
}
