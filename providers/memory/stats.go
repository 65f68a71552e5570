package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// stats is the capability to see how queues stand.
type stats session

// Queues returns the names of all queues that jobs were stored in, workers
// subscribed to, or bounds were set for.
func (p *stats) Queues(ctx context.Context) ([]string, error) {
	s := (*session)(p)
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(s.store.queues)), nil
}

// Queue returns the numbers of one queue. What is held is unknown while Delays is
// not the provider's own: the lender knows.
func (p *stats) Queue(ctx context.Context, name string) (provider.QueueStats, error) {
	s := (*session)(p)
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return provider.QueueStats{}, err
	}
	now := time.Now()
	s.store.advance(now)
	q := s.store.queues[name]
	if q == nil {
		q = &queue{}
	}
	held := s.store.own.counts[name]
	numbers := provider.QueueStats{
		Depth:       provider.Measured(int64(q.unsettled-q.running.len()) - held),
		OldestReady: provider.Measured(age(q.oldestReady(), now)),
		InFlight:    provider.Measured(int64(q.running.len())),
		Dead:        provider.Measured(int64(q.dead)),
		OldestDead:  provider.Measured(time.Duration(0)),
	}
	if s.ownDelays() {
		numbers.Held = provider.Measured(held)
	}
	if l := s.store.dead.oldest(name); l != nil {
		numbers.OldestDead = provider.Measured(age(l.At, now))
	}
	return numbers, nil
}

// oldestReady returns since when the oldest entry is ready; zero: there is none.
func (q *queue) oldestReady() (at time.Time) {
	if e, ok := q.ready.first(); ok {
		at = e.since
	}
	for _, e := range q.early.items {
		at = sooner(at, e.since)
	}
	return at
}

// age returns how long ago something was; 0 for what never was.
func age(at, now time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return max(0, now.Sub(at))
}
