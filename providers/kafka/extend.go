package kafka

import (
	"context"
	"time"

	"github.com/backstage-go/backstage/providers/internal/run"
	"github.com/backstage-go/backstage/runtime/provider"
)

// Extend says which deliveries are still ours: provider.Subscription. The heartbeat
// itself is the member's.
func (s *subscription) Extend(_ context.Context, deliveries []provider.Delivery) []error {
	s.mu.Lock()
	silent := s.silentLocked()
	s.mu.Unlock()
	errs := make([]error, len(deliveries))
	for i, d := range deliveries {
		d, ok := d.(*delivery)
		switch {
		case !ok || d.part.sub != s:
			errs[i] = provider.ErrLeaseLost
		case s.closing.Err() != nil:
			errs[i] = provider.ErrClosed
		default:
			errs[i] = d.beats(silent)
		}
	}
	return errs
}

// beats says whether the delivery is still ours, if anybody knows.
func (d *delivery) beats(silent error) error {
	switch state := d.run.State(); {
	case state == run.Settled:
		return provider.ErrSettled
	case state == run.UnderWay:
		return nil
	case state == run.Lost, d.part.over():
		return provider.ErrLeaseLost
	}
	return silent
}

// over reports whether others have the partition.
func (p *partition) over() bool {
	select {
	case <-p.lost:
		return true
	default:
		return false
	}
}

// ours returns nil when it is known that the run is not lost. A process that was stopped
// for a while asks before it stores anything: others may have run the job.
func (d *delivery) ours(ctx context.Context) error {
	s := d.part.sub
	for {
		if d.part.over() {
			return provider.ErrLeaseLost
		}
		s.mu.Lock()
		alive := time.Since(s.member.alive) < s.member.group.session && !d.part.limbo
		heard := s.member.heard
		s.mu.Unlock()
		if alive {
			return ctx.Err()
		}
		select {
		case <-heard:
		case <-d.part.lost:
		case <-ctx.Done():
			return waited(ctx, s.hears())
		}
	}
}
