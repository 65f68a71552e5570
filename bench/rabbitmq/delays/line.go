package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"

	benchv1 "github.com/backstage-go/backstage/bench/gen/bench/v1"
	"github.com/backstage-go/backstage/bench/gen/bench/v1/worktasks"
	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/side"
)

// mixed is the longest delay of many at once.
const mixed = 5 * time.Second

func random(n int) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = rand.N(mixed)
	}
	return all
}

// line is a client and a worker, and what they know of the jobs between them.
type line struct {
	client *backstage.Client
	stop   func() error

	mu   sync.Mutex
	next int64
	due  map[int64]time.Time
	lag  measure.Durations
	left chan struct{} // closed when no job is left
}

// startLine starts a worker on a provider.
func (p plan) startLine(jobs *provider.Provider) (*line, error) {
	l := &line{due: make(map[int64]time.Time)}
	var err error
	if l.client, err = backstage.NewClient(jobs, backstage.ClientConfig{}); err != nil {
		return nil, err
	}
	l.stop, err = side.StartPlain(jobs, backstage.WorkerConfig{Concurrency: p.slots}, l.handle)
	return l, err
}

func (l *line) handle(_ context.Context, in *benchv1.PlainRequest) error {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	due, first := l.due[in.GetNumber()]
	if !first { // a copy that the broker made twice
		return nil
	}
	delete(l.due, in.GetNumber())
	l.lag = append(l.lag, now.Sub(due))
	if len(l.due) == 0 {
		close(l.left)
	}
	return nil
}

// producers is how many enqueue at once, and each how many jobs they enqueue in a call.
const (
	producers = 4
	each      = 1000
)

// late enqueues a job for each delay, and returns how late they started.
func (l *line) late(ctx context.Context, delays []time.Duration) (measure.Durations, error) {
	l.mu.Lock()
	l.lag, l.left = nil, make(chan struct{})
	first := l.next
	for i := range delays {
		l.due[first+int64(i)] = time.Time{} // until it is enqueued
	}
	l.next += int64(len(delays))
	l.mu.Unlock()

	calls := make(chan [2]int)
	errs := make(chan error, producers)
	for range producers {
		go func() {
			var err error
			for part := range calls {
				if err == nil {
					err = l.enqueue(ctx, first, delays, part[0], part[1])
				}
			}
			errs <- err
		}()
	}
	for from := 0; from < len(delays); from += each {
		calls <- [2]int{from, min(from+each, len(delays))}
	}
	close(calls)
	for range producers {
		if err := <-errs; err != nil {
			return nil, err
		}
	}
	select {
	case <-l.left:
	case <-time.After(delays[0] + 5*time.Minute):
		return nil, fmt.Errorf("not all of %d jobs started", len(delays))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lag, nil
}

// enqueue enqueues some of the jobs in one call.
func (l *line) enqueue(ctx context.Context, first int64, delays []time.Duration, from, to int) error {
	var jobs []backstage.Job
	for i := from; i < to; i++ {
		jobs = append(jobs, worktasks.PlainJob(&benchv1.PlainRequest{Number: first + int64(i)}, backstage.In(delays[i])))
	}
	now := time.Now()
	l.mu.Lock()
	for i := from; i < to; i++ {
		l.due[first+int64(i)] = now.Add(delays[i])
	}
	l.mu.Unlock()
	_, err := l.client.Enqueue(ctx, jobs...)
	return err
}
