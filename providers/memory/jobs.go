package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// jobs is the capability to store jobs and hand them out.
type jobs session

// Facts says that all is strong but durability.
func (*jobs) Facts() provider.JobFacts {
	return provider.JobFacts{
		Death:         provider.LeaseOnRecord,
		Confirmed:     true,
		RefusesLate:   true,
		AtomicHandoff: true,
		ExactCrashes:  true,
		Retries:       provider.RetriesNone,
		Ordered:       true,
	}
}

// Publish stores the jobs one by one. It waits, until ctx ends, for room in a
// bounded queue and for a pending claim to become something else.
func (p *jobs) Publish(ctx context.Context, list []provider.Job, opts provider.PublishOptions) []provider.Stored {
	s := (*session)(p)
	out := make([]provider.Stored, len(list))
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	now := time.Now()
	s.store.advance(now)
	for i := range list {
		out[i], now = s.publish(ctx, &list[i], opts, now)
	}
	return out
}

// publish stores one job and returns the time then: it may have to wait, and gives
// up the lock meanwhile.
func (s *session) publish(ctx context.Context, j *provider.Job, opts provider.PublishOptions, now time.Time) (provider.Stored, time.Time) {
	if err := s.acceptable(j); err != nil {
		return refused(j, err), now
	}
	q := s.store.queue(j.Queue)
	if err := s.usable(ctx); err != nil {
		if s.gate.err == nil && !opts.Accepted && q.full() {
			err = queueFull(q, err)
		}
		return refused(j, err), now
	}
	out, now := s.publishTo(ctx, q, j, opts, now)
	q.admit() // the next publisher may try, whatever became of this one
	return out, now
}

// publishTo stores one job when there is room for it and nobody's claim on its key
// is pending.
func (s *session) publishTo(ctx context.Context, q *queue, j *provider.Job, opts provider.PublishOptions, now time.Time) (provider.Stored, time.Time) {
	claims := !opts.Accepted && !opts.Claimed
	for {
		var rival *claim
		if claims {
			rival = s.rival(j, now)
		}
		var err error
		switch {
		case rival != nil && rival.confirmed:
			return provider.Stored{ID: j.ID, Outcome: provider.OutcomeDuplicate, Holder: rival.owner}, now
		case rival != nil:
			err = s.awaitClaim(ctx, &s.gate, rival)
		case !opts.Accepted && q.full():
			err = s.awaitRoom(ctx, q)
		default:
			if claims {
				s.claim(j, now)
			}
			s.accept(j, q, now)
			return provider.Stored{ID: j.ID, Outcome: provider.OutcomeStored}, now
		}
		now = time.Now()
		s.store.advance(now)
		if err == nil && s.dropped {
			err = s.gate.err
		}
		if err != nil {
			return refused(j, err), now
		}
	}
}

func refused(j *provider.Job, why error) provider.Stored {
	return provider.Stored{ID: j.ID, Outcome: provider.OutcomeRefused, Err: why}
}

var errDelayed = errors.New("it has a delay, and the provider's own Delays are not in use")

// acceptable refuses what can never be stored.
func (s *session) acceptable(j *provider.Job) error {
	if err := check(j); err != nil {
		return err
	}
	if j.Delay > 0 && !s.ownDelays() {
		return fmt.Errorf("job %q: %w", j.ID, errDelayed)
	}
	return nil
}

// accept stores a job in its queue, or holds it for its time.
func (s *session) accept(j *provider.Job, q *queue, now time.Time) {
	e := newEntry(j, q)
	q.unsettled++
	if j.Delay > 0 {
		s.store.own.hold(e, now.Add(j.Delay), now)
		return
	}
	q.enter(e, now)
}

// rival returns the claim of another job on the key of this one, nil if there is
// none, or claims are not the provider's own.
func (s *session) rival(j *provider.Job, now time.Time) *claim {
	if j.Dedupe.Key == "" || !s.ownClaims() {
		return nil
	}
	return s.store.own.claims.other(j.Dedupe.Key, j.ID, now)
}

// claim takes the claim of a job that has no rival.
func (s *session) claim(j *provider.Job, now time.Time) {
	if j.Dedupe.Key == "" || !s.ownClaims() {
		return
	}
	var ends time.Time
	if !j.Dedupe.UntilDone {
		ends = now.Add(j.Dedupe.For)
	}
	s.store.own.claims.take(j.Dedupe.Key, j.ID, true, ends, now)
}

// unclaim frees the claim of a job, if it has it.
func (s *session) unclaim(j *provider.Job) {
	if j.Dedupe.Key != "" && s.ownClaims() {
		s.store.own.claims.release(j.Dedupe.Key, j.ID)
	}
}

// awaitClaim gives up the lock until another's pending claim may have become
// something else.
func (s *session) awaitClaim(ctx context.Context, g *gate, c *claim) error {
	var over <-chan time.Time
	if !c.ends.IsZero() {
		timer := time.NewTimer(time.Until(c.ends))
		defer timer.Stop()
		over = timer.C
	}
	changed := s.store.own.claims.change()
	g.enter()
	defer g.leave()
	s.store.mu.Unlock()
	defer s.store.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-over:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w %q: %w", provider.ErrDedupePending, c.owner, ctx.Err())
	case <-g.gone:
		return fmt.Errorf("%w %q: %w", provider.ErrDedupePending, c.owner, provider.ErrClosed)
	}
}

// awaitRoom gives up the lock until a bounded queue may have room.
func (s *session) awaitRoom(ctx context.Context, q *queue) error {
	room := make(chan struct{})
	q.waiting = append(q.waiting, room)
	s.gate.enter()
	defer s.gate.leave()
	err := s.waitRoom(ctx, q, room)
	if err != nil {
		q.giveUp(room)
	}
	return err
}

func (s *session) waitRoom(ctx context.Context, q *queue, room <-chan struct{}) error {
	s.store.mu.Unlock()
	defer s.store.mu.Lock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return queueFull(q, ctx.Err())
	case <-s.gate.gone:
		return queueFull(q, provider.ErrClosed)
	}
}

// queueFull says which queue had no room until the wait ended for a reason.
func queueFull(q *queue, ended error) error {
	return fmt.Errorf("%w: %q: %w", provider.ErrQueueFull, q.name, ended)
}
