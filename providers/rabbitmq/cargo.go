package rabbitmq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/backstage-go/backstage/runtime/provider"
)

// cargo is what a settlement stores before its run ends: next jobs, or a copy. What
// one call has stored another does not store again.
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

// note puts on record what became of one.
func (d *delivery) note(i int, outcome provider.Outcome) {
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
	s := d.source.lane.sub.store
	var errs []error
	for at, stored := range s.Publish(ctx, now, provider.PublishOptions{Accepted: true}) {
		d.note(left[at], stored.Outcome)
		if stored.Outcome != provider.OutcomeStored {
			errs = append(errs, fmt.Errorf("store job %s: %w", stored.ID, stored.Err))
		}
	}
	return errors.Join(errs...)
}

// carryLetter stores a dead letter that was not stored before: a job, or bytes that
// are none.
func (d *delivery) carryLetter(ctx context.Context, queue string, job *provider.Job, raw []byte, f provider.Failure) error {
	if len(d.left(1)) == 0 {
		return nil
	}
	d.mu.Lock()
	if d.letter == "" {
		d.letter = rand.Text()
	}
	id := d.letter
	d.mu.Unlock()
	m, err := letterMessage(id, job, raw, f)
	if err != nil {
		return err
	}
	s := d.source.lane.sub.store
	outcome, err := s.sendPlain(ctx, s.names.dead(queue), m)
	d.note(0, outcome)
	if outcome != provider.OutcomeStored {
		return fmt.Errorf("store the dead letter: %w", err)
	}
	return nil
}
