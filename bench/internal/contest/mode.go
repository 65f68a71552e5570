package contest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/backstage-go/backstage/bench/internal/load"
	"github.com/backstage-go/backstage/bench/internal/measure"
)

// mode is one way to load a queue.
type mode struct {
	name  string
	about func(*Contest) string
	run   func(context.Context, *Contest, load.Side) (Figures, error)
}

func modes() []mode {
	return []mode{
		{"end-to-end", func(c *Contest) string {
			return fmt.Sprintf("%d jobs, %d producers that wait for their receipts, %d slots", c.Jobs, c.Producers, c.Slots)
		}, endToEnd},
		{"enqueue", func(c *Contest) string {
			return fmt.Sprintf("%d jobs, %d producers that wait for their receipts, no worker", c.Jobs, c.Producers)
		}, enqueue},
		{"single", func(c *Contest) string {
			return fmt.Sprintf("%d jobs, one producer that waits for each receipt, no worker", c.some())
		}, single},
		{"batch", func(c *Contest) string {
			return fmt.Sprintf("%d jobs, one producer, %d a call, no worker", c.Jobs, c.Batch)
		}, batch},
	}
}

// Modes names all modes, with commas between.
func Modes() string {
	var names []string
	for _, m := range modes() {
		names = append(names, m.name)
	}
	return strings.Join(names, ",")
}

func modesOf(names string) ([]mode, error) {
	var chosen []mode
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(modes(), func(m mode) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-modes %s: use %s", name, Modes())
		}
		chosen = append(chosen, modes()[i])
	}
	return chosen, nil
}

// warmup is how many jobs are enqueued before those that count: connections and topics
// are made by them. They have the numbers behind those that count.
const warmup = 500

// some is for what takes a round trip a job.
func (c *Contest) some() int { return max(c.Jobs/10, 1) }

// endToEnd measures from the first enqueue until every job has run. The worker
// receives before, and has run what warms up.
func endToEnd(ctx context.Context, c *Contest, s load.Side) (f Figures, err error) {
	warm, tally := load.NewTally(warmup), load.NewTally(c.Jobs)
	stop, err := s.Start(c.Slots, func(n int) {
		if n >= c.Jobs {
			warm.Ran(n - c.Jobs)
			return
		}
		tally.Ran(n)
	})
	if err != nil {
		return f, err
	}
	if err := errors.Join(s.Batch(ctx, c.Jobs, warmup), warm.Wait(ctx)); err != nil {
		return f, errors.Join(err, stop())
	}
	f.Sample, err = measure.Take(c.Jobs, func() error {
		if err := load.Produce(ctx, s, c.Producers, c.Jobs); err != nil {
			return err
		}
		return tally.Wait(ctx)
	})
	f.Lost, f.Twice = tally.Lost(), tally.Twice()
	return f, errors.Join(err, stop())
}

func enqueue(ctx context.Context, c *Contest, s load.Side) (Figures, error) {
	return c.produce(ctx, s, c.Jobs, func() error { return load.Produce(ctx, s, c.Producers, c.Jobs) })
}

func single(ctx context.Context, c *Contest, s load.Side) (Figures, error) {
	return c.produce(ctx, s, c.some(), func() error { return load.Produce(ctx, s, 1, c.some()) })
}

func batch(ctx context.Context, c *Contest, s load.Side) (Figures, error) {
	return c.produce(ctx, s, c.Jobs, func() error {
		for n := 0; n < c.Jobs; n += c.Batch {
			if err := s.Batch(ctx, n, min(c.Batch, c.Jobs-n)); err != nil {
				return err
			}
		}
		return nil
	})
}

// produce measures what enqueues a number of jobs.
func (c *Contest) produce(ctx context.Context, s load.Side, jobs int, work func() error) (f Figures, err error) {
	if err := s.Batch(ctx, c.Jobs, warmup); err != nil {
		return f, err
	}
	f.Sample, err = measure.Take(jobs, work)
	return f, err
}
