package backstage

import (
	"context"
	"errors"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

const (
	// promoting is what health calls the promotion of delayed jobs.
	promoting = "promote delayed jobs"
	// promoterIsWell is how long a promoter must live to be taken for well.
	promoterIsWell = 2 * time.Second
)

var errPromoterEnded = errors.New("the promoter ended by itself")

// promote keeps delayed jobs moving, starting again after a failure.
func (s *shift) promote(ctx context.Context) {
	if s.broker.Delays == nil {
		return
	}
	var publish provider.Publish
	if s.broker.delaysLent() {
		publish = s.publishPromoted
	}
	for failures := int32(0); ctx.Err() == nil; failures++ {
		began := time.Now()
		well := time.AfterFunc(promoterIsWell, func() { s.trouble(promoting, nil) })
		err := s.broker.Delays.Promote(ctx, publish)
		well.Stop()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errPromoterEnded
		}
		if time.Since(began) > time.Minute {
			failures = 0
		}
		err = s.broker.named(err)
		s.trouble(promoting, err)
		s.observe(PromoterFailed{Err: err})
		s.cfg.Logger.Error("delayed jobs are not promoted, trying again", "error", err)
		sleep(ctx, growing(100*time.Millisecond, 10*time.Second, failures))
	}
}

// publishPromoted stores jobs that a lender held and that are due. Until the lender has
// forgotten them, when ctx ends, or for a third of a lease, none of them starts here: one
// that kills its process before that would be promoted again as if it had never run, and
// so for ever. It waits in its slot.
func (s *shift) publishPromoted(ctx context.Context, jobs []provider.Job) []provider.Stored {
	forgotten := ctx.Done()
	s.mu.Lock()
	for i := range jobs {
		s.promoted[keyOf(&jobs[i])] = forgotten
	}
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := range jobs {
			if key := keyOf(&jobs[i]); s.promoted[key] == forgotten {
				delete(s.promoted, key)
			}
		}
	})
	return s.broker.promoted(ctx, jobs)
}

// awaitForgotten waits until nobody will promote a job again that this worker has
// promoted a moment ago, or for a third of a lease.
func (s *shift) awaitForgotten(e *execution) {
	if e.forgotten == nil {
		return
	}
	e.waited = true
	timer := time.NewTimer(s.cfg.Lease / 3)
	defer timer.Stop()
	select {
	case <-e.forgotten:
	case <-timer.C:
	case <-s.handlers.Done():
	}
}
