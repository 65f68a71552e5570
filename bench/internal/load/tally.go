package load

import (
	"context"
	"sync/atomic"
	"time"
)

// Tally counts the runs of each job.
type Tally struct {
	runs     []atomic.Int32
	distinct atomic.Int64
	total    atomic.Int64
	done     chan struct{}
}

// NewTally returns a tally of the jobs below count, at least one.
func NewTally(count int) *Tally {
	return &Tally{runs: make([]atomic.Int32, count), done: make(chan struct{})}
}

// Ran counts a run of job n.
func (t *Tally) Ran(n int) {
	t.total.Add(1)
	if t.runs[n].Add(1) == 1 && t.distinct.Add(1) == int64(len(t.runs)) {
		close(t.done)
	}
}

// patience is how long nothing may happen before what has not run counts as lost:
// longer than a lease, after which a job that was given up would run.
const patience = 45 * time.Second

// Wait waits until every job has run, or until so long after the last run that
// those that have not are lost.
func (t *Tally) Wait(ctx context.Context) error { return t.WaitFor(ctx, len(t.runs)) }

// WaitFor does the same for a number of jobs.
func (t *Tally) WaitFor(ctx context.Context, count int) error {
	const tick = time.Millisecond
	for seen, since := t.total.Load(), time.Now(); t.distinct.Load() < int64(count); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.done:
			return nil
		case <-time.After(tick):
			if now := t.total.Load(); now != seen {
				seen, since = now, time.Now()
			} else if time.Since(since) > patience {
				return nil
			}
		}
	}
	return nil
}

// Lost returns how many jobs have not run.
func (t *Tally) Lost() int { return len(t.runs) - int(t.distinct.Load()) }

// Twice returns how many runs were not a job's first.
func (t *Tally) Twice() int { return int(t.total.Load() - t.distinct.Load()) }

// Total returns the runs.
func (t *Tally) Total() int { return int(t.total.Load()) }
