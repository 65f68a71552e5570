package backstage

import (
	"context"
	"errors"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// heartbeats keeps the leases of unsettled deliveries, and looks for handlers
// that are stuck, until ctx ends.
func (s *shift) heartbeats(ctx context.Context) {
	ticker := time.NewTicker(max(s.cfg.Lease/3, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.extend(ctx)
			s.findStuck(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// extend sends one heartbeat for all deliveries that have been here for a while.
func (s *shift) extend(ctx context.Context) {
	began := time.Now()
	due := s.dueForHeartbeat(began)
	if len(due) == 0 {
		return
	}
	s.watchLongLived(due)
	deliveries := make([]provider.Delivery, len(due))
	for i, e := range due {
		deliveries[i] = e.delivery
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Lease/3)
	defer cancel()
	for i, err := range s.sub.Extend(ctx, deliveries) {
		switch {
		case err == nil, errors.Is(err, provider.ErrSettled):
			s.mu.Lock()
			due[i].extended = began
			s.mu.Unlock()
		case errors.Is(err, ErrLeaseLost):
			s.lose(due[i])
		default:
			s.doubt(due[i], err)
		}
	}
}

func (s *shift) dueForHeartbeat(now time.Time) []*execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []*execution
	for _, e := range s.active {
		if !e.isLost.Load() && now.Sub(e.extended) > s.cfg.Lease/6 {
			due = append(due, e)
		}
	}
	return due
}

// doubt cancels a handler whose lease can no longer be assumed to hold: nobody
// has confirmed it for as long as it lasts, so another worker may run the job.
// What the handler returns is still settled, which the store refuses if so.
func (s *shift) doubt(e *execution, err error) {
	s.mu.Lock()
	over := time.Since(e.extended) >= s.cfg.Lease && e.handling && !e.doubted
	e.doubted = e.doubted || over
	s.mu.Unlock()
	if over {
		s.cfg.Logger.Warn("a lease was not confirmed in time, its handler is cancelled", "job", e.job.ID, "task", e.job.Task, "error", err)
		e.context.cancel(ErrLeaseLost)
	}
}

// overdue reports whether nobody has confirmed a lease for as long as it lasts: a
// run must not begin on it.
func (s *shift) overdue(e *execution) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(e.extended) >= s.cfg.Lease
}

// lose notes that a delivery is no longer ours.
func (s *shift) lose(e *execution) {
	if e.isLost.Swap(true) {
		return
	}
	s.mu.Lock()
	running := e.handling
	s.mu.Unlock()
	if running {
		e.context.cancel(ErrLeaseLost)
	}
	s.cfg.Logger.Warn("a lease is lost; another worker may run the job", "job", e.job.ID, "task", e.job.Task, "running", running)
	s.observe(LeaseLost{Job: s.info(e), Running: running})
}

// watch is a goroutine that waits for the loss of a session. Deliveries of one
// session share a channel, and one goroutine waits for all of them.
type watch struct {
	deliveries int
	over       chan struct{} // closed when there are none
}

// watch notes the loss of a delivery whose session tells. The caller has the lock.
func (s *shift) watch(e *execution) {
	if e.lost == nil {
		return
	}
	if e.watch = s.watched[e.lost]; e.watch != nil {
		e.watch.deliveries++
		return
	}
	w := &watch{deliveries: 1, over: make(chan struct{})}
	e.watch, s.watched[e.lost] = w, w
	s.pool.Go(func() {
		select {
		case <-e.lost:
			s.loseAll(e.lost)
		case <-w.over:
		case <-s.quit:
		}
	})
}

// watchLongLived watches deliveries whose leases are on record: none of those is
// lost before its first heartbeat is due, and most are settled by then.
func (s *shift) watchLongLived(due []*execution) {
	if s.facts.Death != provider.LeaseOnRecord {
		return
	}
	lost := make([]<-chan struct{}, len(due))
	for i, e := range due {
		lost[i] = e.delivery.Lost()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range due {
		settled := e.index >= len(s.active) || s.active[e.index] != e
		if e.watch == nil && !settled {
			e.lost = lost[i]
			s.watch(e)
		}
	}
}

// unwatch is watch for a delivery that is settled.
func (s *shift) unwatch(e *execution) {
	if e.watch == nil {
		return
	}
	if e.watch.deliveries--; e.watch.deliveries > 0 {
		return
	}
	close(e.watch.over)
	if s.watched[e.lost] == e.watch {
		delete(s.watched, e.lost)
	}
}

func (s *shift) loseAll(lost <-chan struct{}) {
	s.mu.Lock()
	delete(s.watched, lost) // what still comes of this session is told anew
	var gone []*execution
	for _, e := range s.active {
		if e.lost == lost {
			gone = append(gone, e)
		}
	}
	s.mu.Unlock()
	for _, e := range gone {
		s.lose(e)
	}
}

// findStuck reports handlers that still run one lease after their deadline.
func (s *shift) findStuck(now time.Time) {
	var stuck []RunStuck
	s.mu.Lock()
	for _, e := range s.active {
		if e.handling && !e.stuck && now.Sub(e.deadline) > s.cfg.Lease {
			e.stuck = true
			s.stuck++
			stuck = append(stuck, RunStuck{Job: e.run.Info(), Running: now.Sub(e.deadline) + e.policy.Timeout})
		}
	}
	s.mu.Unlock()
	for _, event := range stuck {
		s.cfg.Logger.Error("a handler is stuck", "job", event.Job.ID, "task", event.Job.Task, "running", event.Running)
		s.observe(event)
		if s.cfg.OnStuck != nil {
			s.hooks.Go(func() { s.cfg.OnStuck(event) }) // heartbeats go on
		}
	}
}
