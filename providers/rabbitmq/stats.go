package rabbitmq

import (
	"context"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// stats are provider.Stats.
type stats struct{ store *store }

// Queues returns the names of all queues that anybody published to or served:
// provider.Stats.
func (s *stats) Queues(ctx context.Context) (names []string, err error) {
	err = s.store.during(func() error {
		names, err = s.store.queues(ctx)
		return err
	})
	return names, err
}

// Queue returns the numbers of one queue: provider.Stats. How long the oldest job has
// been ready nobody can tell; how many are in flight only the management API.
func (s *stats) Queue(ctx context.Context, queue string) (q provider.QueueStats, err error) {
	err = s.store.during(func() error {
		n := s.store.names
		there, depth, err := s.store.admin.exists(ctx, n.jobs(queue))
		if err != nil {
			return err
		}
		ahead := s.store.ahead(queue)
		q.Depth = provider.Measured(int64(depth) + ahead)
		if !there {
			q.InFlight, q.OldestReady = provider.Measured[int64](0), provider.Measured[time.Duration](0)
		} else if m := s.store.management; m != nil {
			if known, err := m.queue(ctx, n.jobs(queue)); err == nil && known.Unacknowledged != nil {
				q.InFlight = provider.Measured(max(0, *known.Unacknowledged-ahead))
			}
		}
		if d := s.store.provider.Delays; d != nil {
			if q.Held, err = d.Held(ctx, queue); err != nil {
				return err
			}
		}
		return s.dead(ctx, queue, &q)
	})
	return q, err
}

// ahead counts jobs that the broker has sent to this process, and that wait here for
// a worker to ask.
func (s *store) ahead(queue string) (n int64) {
	for _, sub := range s.subscriptions() {
		sub.mu.Lock()
		if l := sub.lanes[queue]; l != nil {
			n += int64(len(l.ready))
		}
		sub.mu.Unlock()
	}
	return n
}

// dead counts the dead letters, and looks at the first.
func (s *stats) dead(ctx context.Context, queue string, q *provider.QueueStats) error {
	q.Dead, q.OldestDead = provider.Measured[int64](0), provider.Measured[time.Duration](0)
	return s.store.scan(ctx, s.store.names.dead(queue), func(sc *scan) error {
		q.Dead = provider.Measured(int64(sc.left))
		d, there, err := sc.next(ctx)
		if err == nil && there {
			letter := readLetter(queue, &d)
			q.OldestDead = provider.Measured(max(0, time.Since(letter.At)))
		}
		return err
	})
}
