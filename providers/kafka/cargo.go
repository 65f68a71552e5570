package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// cargo is what a settlement stores before its run ends: next jobs, or a dead letter.
// What one call has stored another does not store again.
type cargo struct {
	done    map[int]bool // by the place among the next jobs
	pieces  int
	doubted bool // one of them may be stored, and is not known to be
}

// stored says what became of all of it.
func (c *cargo) stored() provider.Outcome {
	switch {
	case c.doubted, len(c.done) > 0 && len(c.done) < c.pieces:
		return provider.OutcomeUnknown
	case len(c.done) > 0:
		return provider.OutcomeStored
	}
	return provider.OutcomeRefused
}

// left are the pieces that are to be stored.
func (d *delivery) left(pieces int) []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cargo.pieces = pieces
	var left []int
	for i := range pieces {
		if !d.cargo.done[i] {
			left = append(left, i)
		}
	}
	return left
}

// noted takes note of what became of one.
func (d *delivery) noted(i int, outcome provider.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch outcome {
	case provider.OutcomeStored:
		if d.cargo.done == nil {
			d.cargo.done = make(map[int]bool)
		}
		d.cargo.done[i] = true
	case provider.OutcomeUnknown:
		d.cargo.doubted = true
	}
}

// carry stores jobs that were not stored before.
func (d *delivery) carry(ctx context.Context, jobs []provider.Job) error {
	left := d.left(len(jobs))
	if len(left) == 0 {
		return nil
	}
	now := make([]provider.Job, len(left))
	for at, i := range left {
		now[at] = jobs[i]
	}
	var errs []error
	for at, stored := range d.part.sub.store.Publish(ctx, now, provider.PublishOptions{Accepted: true}) {
		d.noted(left[at], stored.Outcome)
		if stored.Outcome != provider.OutcomeStored {
			errs = append(errs, fmt.Errorf("store job %s: %w", stored.ID, stored.Err))
		}
	}
	return errors.Join(errs...)
}

// carryLetter stores a dead letter that was not stored before: a job, or bytes that are
// none.
func (d *delivery) carryLetter(ctx context.Context, job *provider.Job, raw []byte, f provider.Failure) error {
	if len(d.left(1)) == 0 {
		return nil
	}
	d.mu.Lock()
	if d.letter == "" {
		d.letter = newLetterID()
	}
	id := d.letter
	d.mu.Unlock()
	outcome, err := d.part.sub.store.putLetter(ctx, id, d.part.lane.queue, job, raw, f)
	d.noted(0, outcome)
	if outcome != provider.OutcomeStored {
		return fmt.Errorf("store the dead letter: %w", err)
	}
	return nil
}

// bury puts bytes that are no job among the dead letters, however long that takes.
func (d *delivery) bury(r *record) {
	p := d.part
	f := provider.Failure{At: time.Now(), Class: provider.ClassNoRecord, Message: r.err.Error(), Worker: p.sub.opts.Worker}
	for wait := firstWait; p.ctx.Err() == nil; wait = min(2*wait, lastWait) {
		err := d.settle(p.ctx, kindDead, func() error { return d.carryLetter(p.ctx, nil, r.raw, f) }, d.end)
		if err == nil || errors.Is(err, provider.ErrSettled) {
			p.tell(provider.ForeignRecord, 1, fmt.Sprintf("what is at offset %d is no job; it is among the dead letters", r.offset), r.err)
			return
		}
		if errors.Is(err, provider.ErrLeaseLost) || errors.Is(err, provider.ErrClosed) || !sleep(p.ctx, wait) {
			return
		}
	}
}
