package kafka

import (
	"context"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// stats are provider.Stats.
type stats struct{ store *store }

// Queues returns the names of all queues that have a topic: provider.Stats.
func (s *stats) Queues(ctx context.Context) (names []string, err error) {
	err = s.store.during(func() error {
		names, err = s.store.queues(ctx, partJobs)
		return err
	})
	return names, err
}

// Queue returns the numbers of one queue: provider.Stats.
func (s *stats) Queue(ctx context.Context, queue string) (q provider.QueueStats, err error) {
	err = s.store.during(func() error {
		if d := s.store.provider.Delays; d != nil {
			if q.Held, err = d.Held(ctx, queue); err != nil {
				return err
			}
		}
		return s.dead(ctx, queue, &q)
	})
	return q, err
}

// dead counts the dead letters. It reads all of them.
func (s *stats) dead(ctx context.Context, queue string, q *provider.QueueStats) error {
	places, err := (&letters{s.store}).find(ctx, queue, func(*provider.DeadLetter) bool { return true })
	if err != nil {
		return err
	}
	q.Dead, q.OldestDead = provider.Measured(int64(len(places))), provider.Measured[time.Duration](0)
	for _, one := range places {
		age := time.Since(time.Unix(0, one.at))
		if oldest, _ := q.OldestDead.Get(); age > oldest {
			q.OldestDead = provider.Measured(age)
		}
	}
	return nil
}
