package main

import (
	"context"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/redis/internal/server"
	"github.com/backstage-go/backstage/bench/redis/internal/side"
)

// mode is one way to load a queue.
type mode struct {
	name  string
	works bool // there is a worker, and every job runs
	jobs  func(plan) int
	about func(plan) string
	run   func(context.Context, *run) error
}

func modes() []mode {
	all := func(p plan) int { return p.jobs }
	some := func(p plan) int { return max(p.jobs/5, 1) }
	return []mode{
		{"end-to-end", true, all, func(p plan) string {
			return fmt.Sprintf("%d jobs, %d producers that wait for their receipts, %d slots", p.jobs, p.producers, p.slots)
		}, endToEnd},
		{"drain", true, all, func(p plan) string {
			return fmt.Sprintf("a backlog of %d jobs, %d slots", p.jobs, p.slots)
		}, drain},
		{"enqueue", false, all, func(p plan) string {
			return fmt.Sprintf("%d jobs, %d producers that wait for their receipts, no worker", p.jobs, p.producers)
		}, enqueue},
		{"single", false, some, func(p plan) string {
			return fmt.Sprintf("%d jobs, one producer that waits for each receipt, no worker", some(p))
		}, single},
	}
}

// run is one run of one side.
type run struct {
	plan
	side    side.Side
	jobs    int
	tally   *side.Tally
	sent    *server.Sent
	figures figures
}

func endToEnd(ctx context.Context, r *run) error {
	return r.work(ctx, func() error { return side.Produce(ctx, r.side, r.producers, r.jobs) })
}

func drain(ctx context.Context, r *run) error {
	if err := r.side.Fill(ctx, r.jobs); err != nil {
		return err
	}
	return r.work(ctx, func() error { return nil })
}

func enqueue(ctx context.Context, r *run) error {
	return r.take(ctx, func() error { return side.Produce(ctx, r.side, r.producers, r.jobs) })
}

func single(ctx context.Context, r *run) error {
	return r.take(ctx, func() error { return side.Produce(ctx, r.side, 1, r.jobs) })
}

// work measures a worker beside producers, from its start until nothing is left.
func (r *run) work(ctx context.Context, produce func() error) error {
	var stop func() error
	err := r.take(ctx, func() (err error) {
		if stop, err = r.side.Start(r.slots, r.tally.Ran); err != nil {
			return err
		}
		if err := produce(); err != nil {
			return err
		}
		if err := r.tally.Wait(ctx); err != nil {
			return err
		}
		return r.settled(ctx)
	})
	if stop != nil {
		if stopping := stop(); err == nil {
			err = stopping
		}
	}
	return err
}

// settled waits until the queue has no job left. Lost ones would keep it waiting.
func (r *run) settled(ctx context.Context) error {
	for r.tally.Lost() == 0 {
		left, err := r.side.Left(ctx)
		if err != nil || left == 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// take measures work here and in Redis.
func (r *run) take(ctx context.Context, work func() error) error {
	if err := r.plan.server.Client().ConfigResetStat(ctx).Err(); err != nil {
		return err
	}
	if r.sent != nil {
		r.sent.Take()
	}
	before, err := r.plan.server.CPU(ctx)
	if err != nil {
		return err
	}
	if r.figures.Sample, err = measure.Take(r.jobs, work); err != nil {
		return err
	}
	if r.sent != nil {
		r.figures.sent = r.sent.Take()
	}
	if r.figures.executed, err = r.plan.server.Executed(ctx); err != nil {
		return err
	}
	after, err := r.plan.server.CPU(ctx)
	r.figures.redis = after - before
	return err
}
