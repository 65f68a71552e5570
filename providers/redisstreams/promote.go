package redisstreams

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

const (
	// promoteEvery is how often a promoter looks for what other processes have held.
	promoteEvery = 900 * time.Millisecond
	// mostQueues is how many queues one step promotes from, and mostDue how many jobs.
	mostQueues = 50
	mostDue    = 500
	// firstRest and lastRest are how long a promoter rests after an error.
	firstRest = 100 * time.Millisecond
	lastRest  = time.Second
)

// Promote moves due jobs: provider.Delays. Into the provider's own streams they go in
// one step, from a borrower's scope by publishing.
func (d *delays) Promote(ctx context.Context, publish provider.Publish) error {
	s := d.store
	if !s.calls.Enter() {
		return provider.ErrClosed
	}
	defer s.calls.Leave()
	if publish == nil && d.scope.lent {
		publish = func(ctx context.Context, jobs []provider.Job) []provider.Stored {
			return s.Publish(ctx, jobs, provider.PublishOptions{Accepted: true})
		}
	}
	within, cancel := s.untilClosed(ctx)
	defer cancel()
	a := s.holds.join()
	defer s.holds.quit(a)
	for rest := firstRest; within.Err() == nil; {
		next, err := d.promoteDue(within, publish)
		if err != nil {
			sleep(within, rest)
			rest = min(2*rest, lastRest)
			continue
		}
		rest = firstRest
		s.holds.rest(within, a, min(next, promoteEvery))
	}
	if ctx.Err() != nil {
		return nil
	}
	return provider.ErrClosed
}

// promoteDue moves what is due, up to a number, and returns how long nothing more is.
func (d *delays) promoteDue(ctx context.Context, publish provider.Publish) (time.Duration, error) {
	keys, err := d.indexes(ctx)
	if err != nil {
		return 0, err
	}
	next := time.Duration(math.MaxInt64)
	for _, key := range keys {
		due, wait, err := d.dueIn(ctx, key)
		if err != nil {
			return 0, err
		}
		next = min(next, wait)
		if len(due) == 0 {
			continue
		}
		next = 0
		if publish != nil {
			err = d.publishDue(ctx, due, publish)
		} else {
			err = d.moveDue(ctx, due)
		}
		if err != nil {
			return 0, err
		}
	}
	return next, nil
}

// indexes returns the keys that say which queues hold something: one for each slot.
func (d *delays) indexes(ctx context.Context) ([]string, error) {
	s := d.store
	if d.scope.lent || s.keys.tags == TagNamespace {
		return []string{s.keys.queue(d.scope, "").due}, nil
	}
	queues, err := s.queues(ctx)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(queues))
	for i, queue := range queues {
		keys[i] = s.keys.queue(d.scope, queue).due
	}
	return keys, nil
}

// dueIn returns the queues of an index with jobs that are due, and how long nothing
// more is.
func (d *delays) dueIn(ctx context.Context, key string) (due []string, wait time.Duration, err error) {
	reply, err := d.store.link.run(ctx, &d.store.scripts.due, []string{key}, strconv.Itoa(mostQueues))
	if err != nil {
		return nil, 0, err
	}
	now, _ := strconv.ParseInt(textOf(nth(reply, 0)), 10, 64)
	for i := 1; i+1 < len(reply); i += 2 {
		when, err := strconv.ParseFloat(textOf(reply[i+1]), 64)
		if err != nil {
			return nil, 0, err
		}
		if ms := int64(when) - now; ms > 0 {
			return due, time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond, nil
		}
		due = append(due, textOf(reply[i]))
	}
	return due, math.MaxInt64, nil
}

// moveDue moves due jobs of the provider's own into their streams.
func (d *delays) moveDue(ctx context.Context, queues []string) error {
	s := d.store
	var r request
	r.say(strconv.Itoa(mostDue), strconv.Itoa(mostBytes))
	for _, queue := range queues {
		r.queue(s.keys, d.scope, queue)
		r.say(queue)
	}
	reply, err := s.link.run(ctx, &s.scripts.promote, r.keys, r.args...)
	if err != nil {
		return err
	}
	for i, v := range reply {
		if ghosts := numberOf(nth(listOf(v), 1)); ghosts > 0 {
			s.heldGhosts(queues[i], ghosts)
		}
	}
	return nil
}

// heldGhosts reports held jobs that somebody removed by hand.
func (s *store) heldGhosts(queue string, n int64) {
	s.news.emit(provider.Event{Kind: provider.Ghost, Queue: queue, Count: n, Message: "held jobs whose records are not there were forgotten"})
}
