package redisstreams

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/runtime/provider"
)

// stats are provider.Stats. All numbers of a queue are of one moment.
type stats struct{ store *store }

// Queues returns the names of all queues: provider.Stats.
func (st *stats) Queues(ctx context.Context) ([]string, error) {
	var queues []string
	err := st.store.during(func() error {
		var err error
		queues, err = st.store.queues(ctx)
		return err
	})
	return queues, err
}

// queues returns the list of queues, sorted.
func (s *store) queues(ctx context.Context) ([]string, error) {
	key := s.keys.registry()
	queues := []string{}
	err := s.link.to(ctx, key, func(server *redis.Client) error {
		var err error
		queues, err = server.SMembers(ctx, key).Result()
		return err
	})
	slices.Sort(queues)
	return queues, err
}

// Queue returns the numbers of one queue: provider.Stats. A job that was given back is
// ready since then; one that a dead worker has is in flight until it is taken over.
func (st *stats) Queue(ctx context.Context, queue string) (provider.QueueStats, error) {
	s := st.store
	var reply []any
	err := s.during(func() error {
		h, g := s.keys.queue(scope{}, queue), s.keys.letters(queue)
		var err error
		reply, err = s.link.run(ctx, &s.scripts.stats, []string{h.stream, h.held, g.dead}, group, parked)
		return err
	})
	if err != nil {
		return provider.QueueStats{}, err
	}
	if len(reply) != 7 {
		return provider.QueueStats{}, fmt.Errorf("redis: script stats: %d numbers of queue %q, not 7", len(reply), queue)
	}
	n := func(i int) int64 { return numberOf(reply[i]) }
	entries, delivered, back := n(0), n(1), n(2)
	return provider.QueueStats{
		// An entry that was deleted by hand may still be among those delivered.
		Depth:       provider.Measured(max(0, entries-delivered) + back),
		OldestReady: provider.Measured(age(n(5))),
		InFlight:    provider.Measured(delivered - back),
		Held:        provider.Measured(n(3)),
		Dead:        provider.Measured(n(4)),
		OldestDead:  provider.Measured(age(n(6))),
	}, nil
}

// age makes a time of milliseconds; 0 of none.
func age(ms int64) time.Duration { return time.Duration(max(0, ms)) * time.Millisecond }
