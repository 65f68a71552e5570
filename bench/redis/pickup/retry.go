package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/backstage-go/backstage/runtime"

	benchv1 "github.com/backstage-go/backstage/bench/gen/bench/v1"
	"github.com/backstage-go/backstage/bench/gen/bench/v1/worktasks"
	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/redis/internal/side"
)

// Retries are asked for after a time between these.
const (
	shortest = 200 * time.Millisecond
	longest  = 2 * time.Second
)

// probes are jobs that fail the first time and are measured the second time. Their
// numbers are negative; all other jobs are the load.
type probes struct {
	client *backstage.Client
	done   chan struct{} // one for each that was measured

	mu   sync.Mutex
	due  map[int64]time.Time
	late measure.Durations
}

var errFirstRun = errors.New("the first run fails")

// handle fails a probe once.
func (p *probes) handle(_ context.Context, in *benchv1.PlainRequest) error {
	if in.GetNumber() >= 0 {
		return nil
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if due, again := p.due[in.GetNumber()]; again {
		p.late = append(p.late, now.Sub(due))
		p.done <- struct{}{}
		return nil
	}
	wait := shortest + rand.N(longest-shortest)
	p.due[in.GetNumber()] = now.Add(wait)
	return backstage.RetryAfter(errFirstRun, wait)
}

// enqueue enqueues the probes below count, each after a pause, and waits for them:
// for each before the next with inTurn.
func (p *probes) enqueue(ctx context.Context, count int, pause time.Duration, inTurn bool) error {
	wait := func() error {
		select {
		case <-p.done:
			return nil
		case <-time.After(time.Minute):
			return errors.New("a retry did not come within a minute")
		}
	}
	for n := range count {
		time.Sleep(pause)
		if _, err := backstage.Enqueue(ctx, p.client, worktasks.PlainJob(&benchv1.PlainRequest{Number: int64(-1 - n)})); err != nil {
			return err
		}
		if inTurn {
			if err := wait(); err != nil {
				return err
			}
		}
	}
	for n := 0; n < count && !inTurn; n++ {
		if err := wait(); err != nil {
			return err
		}
	}
	return nil
}

// retries runs a worker on an empty server while probes fail once.
func (p plan) retries(ctx context.Context, name string, enqueue func(context.Context, *probes) error) (err error) {
	if err := p.server.Clear(ctx); err != nil {
		return err
	}
	store, err := side.Open(ctx, p.server.Options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(ctx)) }()
	client, err := backstage.NewClient(store, backstage.ClientConfig{})
	if err != nil {
		return err
	}
	probes := &probes{client: client, done: make(chan struct{}, p.idle+p.loaded), due: make(map[int64]time.Time)}
	stop, err := side.StartPlain(store, backstage.WorkerConfig{Concurrency: p.slots}, probes.handle)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := enqueue(ctx, probes); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	probes.mu.Lock()
	defer probes.mu.Unlock()
	fmt.Fprintf(p.out, "%s: %s\n", name, probes.late)
	return nil
}

// idleRetries has one probe at a time, and nothing else.
func (p plan) idleRetries(ctx context.Context, probes *probes) error {
	return probes.enqueue(ctx, p.idle, 0, true)
}

// loadedRetries has many probes at a time beside the load.
func (p plan) loadedRetries(ctx context.Context, probes *probes) error {
	var (
		group  sync.WaitGroup
		enough atomic.Bool
		failed atomic.Pointer[error]
		jobs   atomic.Int64
		began  = time.Now()
	)
	for range p.producers {
		group.Go(func() {
			for !enough.Load() {
				in := &benchv1.PlainRequest{Number: jobs.Add(1)}
				if _, err := backstage.Enqueue(ctx, probes.client, worktasks.PlainJob(in)); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	err := probes.enqueue(ctx, p.loaded, 10*time.Millisecond, false)
	enough.Store(true)
	group.Wait()
	if load := failed.Load(); load != nil {
		err = errors.Join(err, *load)
	}
	fmt.Fprintf(p.out, "(%.0f jobs/s beside the following)\n", float64(jobs.Load())/time.Since(began).Seconds())
	return err
}
