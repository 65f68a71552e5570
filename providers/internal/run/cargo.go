package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/backstage-go/backstage/runtime/provider"
)

// cargo is what a settlement stores before its run ends, over all of its tries: what one
// has stored another does not store again.
type cargo struct {
	mu      sync.Mutex
	done    map[int]bool // by the place among the pieces
	pieces  int
	doubted bool   // one of them may be stored, and is not known to be
	letter  string // the id of its dead letter
}

// stored says what became of all of it.
func (c *cargo) stored() provider.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.doubted, len(c.done) > 0 && len(c.done) < c.pieces:
		return provider.OutcomeUnknown
	case len(c.done) > 0:
		return provider.OutcomeStored
	}
	return provider.OutcomeRefused
}

// left are the pieces, of so many, that are to be stored.
func (c *cargo) left(pieces int) []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pieces = pieces
	var left []int
	for i := range pieces {
		if !c.done[i] {
			left = append(left, i)
		}
	}
	return left
}

// note puts on record what became of one.
func (c *cargo) note(i int, outcome provider.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch outcome {
	case provider.OutcomeStored:
		if c.done == nil {
			c.done = make(map[int]bool)
		}
		c.done[i] = true
	case provider.OutcomeUnknown:
		c.doubted = true
	}
}

// Carry stores the jobs that no earlier try has stored, by publish. The error joins why
// some are not stored.
func (r *Run) Carry(ctx context.Context, publish provider.Jobs, jobs []provider.Job) error {
	left := r.cargo.left(len(jobs))
	if len(left) == 0 {
		return nil
	}
	now := make([]provider.Job, len(left))
	for at, i := range left {
		now[at] = jobs[i]
	}
	var errs []error
	for at, stored := range publish.Publish(ctx, now, provider.PublishOptions{Accepted: true}) {
		r.cargo.note(left[at], stored.Outcome)
		if stored.Outcome != provider.OutcomeStored {
			errs = append(errs, fmt.Errorf("store job %s: %w", stored.ID, stored.Err))
		}
	}
	return errors.Join(errs...)
}

// CarryLetter stores a dead letter, unless an earlier try has, under one id in all tries.
func (r *Run) CarryLetter(store func(id string) (provider.Outcome, error)) error {
	c := &r.cargo
	if len(c.left(1)) == 0 {
		return nil
	}
	c.mu.Lock()
	c.letter = cmp.Or(c.letter, rand.Text())
	id := c.letter
	c.mu.Unlock()
	outcome, err := store(id)
	c.note(0, outcome)
	if outcome != provider.OutcomeStored {
		return fmt.Errorf("store the dead letter: %w", err)
	}
	return nil
}
