package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Replay returns dead letters to their queues: provider.DeadLetters. Each letter is
// moved in one step, so that none is in two places, whenever the call is cut off.
func (l *letters) Replay(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
	results := notThere(addresses)
	err := l.store.during(func() error {
		for i, where := range addresses {
			a, ok := parseAddress(where)
			if !ok {
				continue
			}
			stored, err := l.replay(ctx, a)
			results[i] = stored
			if err != nil {
				return cutOff(results[i+1:], err)
			}
		}
		return nil
	})
	if errors.Is(err, provider.ErrClosed) {
		return nil, err
	}
	return results, err
}

// notThere are the answers for letters that are not there.
func notThere(addresses []string) []provider.Stored {
	results := make([]provider.Stored, len(addresses))
	for i, where := range addresses {
		results[i] = provider.Stored{Outcome: provider.OutcomeRefused, Err: notFound(where)}
	}
	return results
}

// cutOff answers for letters that an error kept from their turn.
func cutOff(results []provider.Stored, err error) error {
	for i := range results {
		results[i] = provider.Stored{Outcome: provider.OutcomeRefused, Err: err}
	}
	return err
}

// failed is the answer for a letter whose own step failed.
func failed(id string, err error) provider.Stored {
	if unknown(err) {
		return provider.Stored{ID: id, Outcome: provider.OutcomeUnknown, Err: err}
	}
	return provider.Stored{ID: id, Outcome: provider.OutcomeRefused, Err: err}
}

// replay returns one letter. An error is one that the next letter would meet too.
func (l *letters) replay(ctx context.Context, a address) (provider.Stored, error) {
	s := l.store
	gone := provider.Stored{Outcome: provider.OutcomeRefused, Err: notFound(a.String())}
	body, err := l.read(ctx, a)
	if errors.Is(err, provider.ErrNotFound) {
		return gone, nil
	}
	if err != nil {
		return failed("", err), err
	}
	job, err := provider.Unmarshal([]byte(body))
	if err != nil {
		err = fmt.Errorf("dead letter %q can only be discarded: %w", a, provider.ErrNoRecord)
		return provider.Stored{Outcome: provider.OutcomeRefused, Err: err}, nil
	}
	back, err := s.now(ctx, a.queue)
	if err != nil {
		return failed(job.ID, err), err
	}
	again := job.Replay(back)
	record, err := provider.Marshal(&again)
	if err != nil {
		return provider.Stored{ID: job.ID, Outcome: provider.OutcomeRefused, Err: err}, nil
	}
	g := s.keys.letters(a.queue)
	keys := []string{g.dead, g.letters, s.keys.queue(scope{}, a.queue).stream}
	if s.ownClaims() && job.Dedupe.Key != "" {
		keys = append(keys, s.keys.claim(scope{}, job.Dedupe.Key))
	}
	reply, err := s.link.runSafely(ctx, s.replicas, &s.scripts.replay, keys, a.name(), body, record, job.ID, claimTime(job.Dedupe))
	if err != nil {
		return failed(job.ID, err), err
	}
	switch holder := textOf(nth(reply, 1)); textOf(nth(reply, 0)) {
	case "stored":
		return provider.Stored{ID: job.ID, Outcome: provider.OutcomeStored}, nil
	case "duplicate":
		return provider.Stored{ID: job.ID, Outcome: provider.OutcomeDuplicate, Holder: holder}, nil
	case "pending":
		return provider.Stored{ID: job.ID, Outcome: provider.OutcomeRefused, Err: provider.ErrDedupePending}, nil
	}
	return gone, nil
}

// now is the time of the server that has a queue.
func (s *store) now(ctx context.Context, queue string) (time.Time, error) {
	var now time.Time
	err := s.link.to(ctx, s.keys.tag(queue), func(server *redis.Client) error {
		var err error
		now, err = server.Time(ctx).Result()
		return err
	})
	return now, err
}

// Discard removes dead letters: provider.DeadLetters.
func (l *letters) Discard(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
	results := notThere(addresses)
	err := l.store.during(func() error {
		queues, parts := byQueue(addresses)
		for _, queue := range queues {
			for part := parts[queue]; len(part) > 0; {
				n := min(len(part), mostPieces)
				if err := l.discard(ctx, queue, addresses, part[:n], results); err != nil {
					return err
				}
				part = part[n:]
			}
		}
		return nil
	})
	if errors.Is(err, provider.ErrClosed) {
		return nil, err
	}
	return results, err
}

// discard removes letters of one queue: those whose places in the call are given.
func (l *letters) discard(ctx context.Context, queue string, addresses []string, part []int, results []provider.Stored) error {
	s := l.store
	g := s.keys.letters(queue)
	var names []any
	for _, i := range part {
		a, _ := parseAddress(addresses[i])
		names = append(names, a.name())
	}
	reply, err := s.link.runSafely(ctx, s.replicas, &s.scripts.discard, []string{g.dead, g.letters}, names...)
	if err != nil {
		for _, i := range part {
			results[i] = failed("", err)
		}
		return err
	}
	for n, i := range part {
		body := textOf(nth(reply, n))
		if body == "" {
			continue
		}
		results[i] = provider.Stored{Outcome: provider.OutcomeStored}
		if job, err := provider.Unmarshal([]byte(body)); err == nil {
			results[i].ID = job.ID
		}
	}
	return nil
}
