package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/backstage-go/backstage/bench/internal/load"
	"github.com/backstage-go/backstage/bench/internal/measure"
)

// mode is one way to load a queue.
type mode struct {
	name  string
	about func(plan) string
	run   func(context.Context, plan, load.Side) (figures, error)
}

func modes() []mode {
	return []mode{
		{"end-to-end", func(p plan) string {
			return fmt.Sprintf("%d jobs, %d producers that wait for their receipts, %d slots", p.jobs, p.producers, p.slots)
		}, endToEnd},
		{"enqueue", func(p plan) string {
			return fmt.Sprintf("%d jobs, %d producers that wait for their receipts, no worker", p.jobs, p.producers)
		}, enqueue},
		{"single", func(p plan) string {
			return fmt.Sprintf("%d jobs, one producer that waits for each receipt, no worker", p.some())
		}, single},
		{"batch", func(p plan) string {
			return fmt.Sprintf("%d jobs, one producer, %d a call, no worker", p.jobs, p.batch)
		}, batch},
	}
}

// some is for what takes a round trip a job.
func (p plan) some() int { return max(p.jobs/10, 1) }

// endToEnd measures from the first enqueue until every job has run. The worker
// receives before.
func endToEnd(ctx context.Context, p plan, s load.Side) (f figures, err error) {
	tally := load.NewTally(p.jobs)
	stop, err := s.Start(p.slots, tally.Ran)
	if err != nil {
		return f, err
	}
	f.Sample, err = measure.Take(p.jobs, func() error {
		if err := load.Produce(ctx, s, p.producers, p.jobs); err != nil {
			return err
		}
		return tally.Wait(ctx)
	})
	f.lost, f.twice = tally.Lost(), tally.Twice()
	return f, errors.Join(err, stop())
}

func enqueue(ctx context.Context, p plan, s load.Side) (f figures, err error) {
	f.Sample, err = measure.Take(p.jobs, func() error { return load.Produce(ctx, s, p.producers, p.jobs) })
	return f, err
}

func single(ctx context.Context, p plan, s load.Side) (f figures, err error) {
	f.Sample, err = measure.Take(p.some(), func() error { return load.Produce(ctx, s, 1, p.some()) })
	return f, err
}

func batch(ctx context.Context, p plan, s load.Side) (f figures, err error) {
	f.Sample, err = measure.Take(p.jobs, func() error {
		for n := 0; n < p.jobs; n += p.batch {
			if err := s.Batch(ctx, n, min(p.batch, p.jobs-n)); err != nil {
				return err
			}
		}
		return nil
	})
	return f, err
}
