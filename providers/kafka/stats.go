package kafka

import (
	"context"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// stats are provider.Stats: what the group has on record of each partition, and what
// the workers of this process run at this moment. What others run is on no record.
type stats struct{ store *store }

// Queues returns the names of all queues that have a topic: provider.Stats.
func (s *stats) Queues(ctx context.Context) (names []string, err error) {
	err = s.store.during(func() error {
		names, err = s.store.queues(ctx, partJobs)
		return err
	})
	return names, err
}

// Queue returns the numbers of one queue: provider.Stats. Depth counts what is not
// settled, whether anybody consumes or not, less what is known to run or to wait for
// its time in its place: what other processes run is in it. InFlight and OldestReady
// are unknown while other processes may run some of it.
func (s *stats) Queue(ctx context.Context, queue string) (q provider.QueueStats, err error) {
	err = s.store.during(func() error {
		all, err := s.store.standings(ctx, queue)
		if err != nil {
			return err
		}
		var n numbers
		for i := range all {
			n.add(&all[i])
		}
		q.Depth = provider.Measured(n.waiting)
		if !n.elsewhere {
			q.InFlight = provider.Measured(n.running)
		}
		if q.OldestReady, err = s.oldest(ctx, queue, all); err != nil {
			return err
		}
		if q.Held, err = s.held(ctx, queue, n.later); err != nil {
			return err
		}
		return s.dead(ctx, queue, &q)
	})
	return q, err
}

// numbers are those of all partitions together.
type numbers struct {
	waiting, running, later int64
	elsewhere               bool
}

func (n *numbers) add(s *standing) {
	running := int64(len(s.running))
	n.running += running
	n.later += s.Later
	n.waiting += max(0, s.unsettled()-running-s.Later)
	n.elsewhere = n.elsewhere || s.elsewhere
}

// held counts what waits for its time: in another store, and in its place.
func (s *stats) held(ctx context.Context, queue string, later int64) (provider.Measure[int64], error) {
	d := s.store.provider.Delays
	if d == nil {
		return provider.Measured(later), nil
	}
	lent, err := d.Held(ctx, queue)
	if n, known := lent.Get(); known {
		lent = provider.Measured(n + later)
	}
	return lent, err
}

// oldest is how long the oldest has been ready: the age of the first record of each
// partition that is not settled and does not run. Those below the mark may run in other
// processes.
func (s *stats) oldest(ctx context.Context, queue string, all []standing) (age provider.Measure[time.Duration], err error) {
	age = provider.Measured[time.Duration](0)
	for i := range all {
		of := &all[i]
		first, known := of.ready()
		if !known {
			return provider.Measure[time.Duration]{}, nil
		}
		if first >= of.end {
			continue
		}
		r, err := s.store.first(ctx, s.store.names.jobs(queue), of.partition, first, of.end)
		if err != nil {
			return age, err
		}
		if r == nil {
			continue
		}
		since := max(0, time.Since(time.UnixMilli(r.at)))
		if oldest, _ := age.Get(); since > oldest {
			age = provider.Measured(since)
		}
	}
	return age, nil
}

// dead counts the dead letters.
func (s *stats) dead(ctx context.Context, queue string, q *provider.QueueStats) error {
	n, oldest, err := s.store.census.count(ctx, queue)
	if err != nil {
		return err
	}
	q.Dead, q.OldestDead = provider.Measured(n), provider.Measured[time.Duration](0)
	if n > 0 {
		q.OldestDead = provider.Measured(max(0, time.Since(oldest)))
	}
	return nil
}
