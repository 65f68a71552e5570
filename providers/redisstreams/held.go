package redisstreams

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/runtime/provider"
)

// finest is the grain of due times: Redis tells milliseconds apart, and a job is due
// in the first one that is late enough.
const finest = time.Millisecond

// delays are provider.Delays within a scope.
type delays struct {
	store *store
	scope scope
}

// Hold keeps jobs until they are due: provider.Delays.
func (d *delays) Hold(ctx context.Context, jobs []provider.Job) []provider.Stored {
	return d.store.putJobs(ctx, jobs, func(j *provider.Job) (*entry, error) {
		e, err := newEntry(j, d.scope, true)
		if err != nil {
			return nil, err
		}
		e.held, e.stamp = true, stampOf(j)
		return e, nil
	})
}

// heldCopy is one copy of a held job.
type heldCopy struct {
	stamp string
	body  string
}

// readCopies reads what held.lua keeps of an id.
func readCopies(value string) ([]heldCopy, error) {
	var list []heldCopy
	for value != "" {
		words := strings.SplitN(value, " ", 4)
		if len(words) < 4 {
			return nil, fmt.Errorf("redis: a held job is damaged: %.40q", value)
		}
		size, err := strconv.Atoi(words[2])
		if err != nil || size > len(words[3]) {
			return nil, fmt.Errorf("redis: a held job is damaged: %.40q", value)
		}
		list = append(list, heldCopy{words[0], words[3][:size]})
		value = words[3][size:]
	}
	return list, nil
}

// Cancel removes held jobs that never started: provider.Delays. What a promoter is
// publishing at this moment is not held any more.
func (d *delays) Cancel(ctx context.Context, id string) ([]provider.Job, error) {
	var cancelled []provider.Job
	err := d.store.during(func() error {
		queues, err := d.holding(ctx)
		if err != nil {
			return err
		}
		for _, queue := range queues {
			jobs, err := d.cancelIn(ctx, queue, id)
			if err != nil {
				return err
			}
			cancelled = append(cancelled, jobs...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return cancelled, nil
}

// holding returns the queues that hold something.
func (d *delays) holding(ctx context.Context) ([]string, error) {
	s := d.store
	keys, err := d.indexes(ctx)
	if err != nil {
		return nil, err
	}
	var queues []string
	for _, key := range keys {
		err := s.link.to(ctx, key, func(server *redis.Client) error {
			some, err := server.ZRange(ctx, key, 0, -1).Result()
			queues = append(queues, some...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return queues, nil
}

// cancelIn removes what a queue holds of an id.
func (d *delays) cancelIn(ctx context.Context, queue, id string) ([]provider.Job, error) {
	s := d.store
	h := s.keys.queue(d.scope, queue)
	var value string
	err := s.link.to(ctx, h.bodies, func(server *redis.Client) error {
		var err error
		value, err = server.HGet(ctx, h.bodies, id).Result()
		if err == redis.Nil {
			err = nil
		}
		return err
	})
	if err != nil || value == "" {
		return nil, err
	}
	list, err := readCopies(value)
	if err != nil {
		return nil, err
	}
	var r request
	var jobs []provider.Job
	r.queue(s.keys, d.scope, queue)
	r.say(queue, id)
	for _, c := range list {
		job, err := provider.Unmarshal([]byte(c.body))
		if err != nil || job.Started() {
			continue
		}
		claim, order := 0, 0
		if job.Dedupe.Key != "" && (d.scope.lent || s.keys.tags == TagNamespace) {
			claim = r.key(s.keys.claim(d.scope, job.Dedupe.Key))
		}
		if job.OrderingKey != "" {
			order = r.key(s.keys.order(d.scope, queue, job.OrderingKey))
		}
		jobs = append(jobs, job)
		r.say(c.stamp, c.body, digits(claim), digits(order))
	}
	if len(jobs) == 0 {
		return nil, nil
	}
	reply, err := s.link.run(ctx, &s.scripts.cancel, r.keys, r.args...)
	if err != nil {
		return nil, err
	}
	var removed []provider.Job
	for _, n := range reply {
		removed = append(removed, jobs[numberOf(n)-1])
	}
	return removed, nil
}

// Held counts the jobs of a queue that are held: provider.Delays.
func (d *delays) Held(ctx context.Context, queue string) (provider.Measure[int64], error) {
	s := d.store
	key := s.keys.queue(d.scope, queue).held
	var n int64
	err := s.during(func() error {
		return s.link.to(ctx, key, func(server *redis.Client) error {
			var err error
			n, err = server.ZCard(ctx, key).Result()
			return err
		})
	})
	if err != nil {
		return provider.Measure[int64]{}, err
	}
	return provider.Measured(n), nil
}

// Facts describes the delays: provider.Delays.
func (d *delays) Facts() provider.DelayFacts {
	return provider.DelayFacts{Lent: d.scope.lent, Finest: finest, Addressable: true, Countable: true}
}
