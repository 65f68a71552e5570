package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// sweep is how far the settled records of a partition are deleted.
type sweep struct {
	to      int64 // everything before is
	at      time.Time
	running bool
}

const (
	// swathe is how many records are deleted at once,
	swathe = 10_000
	// lull after which fewer are.
	lull = 30 * time.Second
)

// sweepLocked deletes what is settled, now and then.
func (s *subscription) sweepLocked(p *partition) {
	to := p.tracker.Committed()
	if p.swept.at.IsZero() {
		p.swept.at, p.swept.to = time.Now(), to
	}
	done := to - p.swept.to
	if p.swept.running || done < swathe && (done == 0 || time.Since(p.swept.at) < lull) || s.unswept {
		return
	}
	p.swept.running = true
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, s.store.cfg.Timeout)
		defer cancel()
		err := s.store.deleteRecords(ctx, p.at.topic, p.at.number, to)
		forbidden := errors.Is(err, kafkago.TopicAuthorizationFailed)
		s.mu.Lock()
		if p.swept.running, p.swept.at = false, time.Now(); err == nil {
			p.swept.to = to
		}
		told := s.unswept
		s.unswept = s.unswept || forbidden
		s.mu.Unlock()
		if forbidden && !told {
			s.store.news.emit(provider.Event{Kind: provider.Degraded, Queue: p.lane.queue, Err: err,
				Message: "settled jobs stay in their topics, because the user may not delete records: allow DELETE for them, or set a retention.ms longer than the longest max age"})
		}
	})
}

// sweepAll deletes what is settled of all partitions, as far as ctx lets it: should the
// group's offsets expire while it has no members, it goes on where the logs begin.
func (s *subscription) sweepAll(ctx context.Context) {
	s.mu.Lock()
	to := make(map[spot]int64)
	for at, p := range s.parts {
		if p.tracker != nil && !p.swept.at.IsZero() && p.tracker.Committed() > p.swept.to && !s.unswept {
			to[at] = p.tracker.Committed()
		}
	}
	s.mu.Unlock()
	var all sync.WaitGroup
	for at, offset := range to {
		all.Go(func() { _ = s.store.deleteRecords(ctx, at.topic, at.number, offset) }) // or others do
	}
	all.Wait()
}
