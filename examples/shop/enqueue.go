package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
)

const (
	// patience is how long the producer goes on with a batch that the broker does not
	// take.
	patience = 5 * time.Minute
	// silence is how long it waits for one answer.
	silence = 10 * time.Second
)

// press is one press of "buy".
type press struct {
	orderID string
	job     backstage.Job
	receipt backstage.Receipt // of the last try
}

// answered reports whether the broker has the job, or another of the same order.
func (p *press) answered() bool { return p.receipt.Err == nil }

// enqueue enqueues jobs until the broker has answered for each. A Job has its id
// from the start, so that to enqueue it again is to try the same one. If the answer
// was Unknown and it is stored after all, both copies may run, and the ledger
// recognises the second by the id. (An id that is to outlive the producer is given by
// backstage.WithID; here the dedupe key does that.)
func (p *producer) enqueue(ctx context.Context, presses []*press) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	open := slices.Clone(presses)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := p.try(ctx, open)
		if open = slices.DeleteFunc(open, (*press).answered); len(open) == 0 {
			return err
		}
		p.log.Warn("enqueueing again under the same ids", "jobs", len(open), "error", open[0].receipt.Err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%d orders are not accepted, or not known to be", len(open)), err)
		}
		p.again += len(open)
		for _, press := range open {
			if press.receipt.Outcome == backstage.Unknown {
				p.unknown++
			}
		}
	}
}

// try enqueues jobs once, and leaves in each press what became of it.
func (p *producer) try(ctx context.Context, presses []*press) error {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	jobs := make([]backstage.Job, len(presses))
	for i, press := range presses {
		jobs[i] = press.job
	}
	receipts, err := p.client.Enqueue(ctx, jobs...)
	for i, receipt := range receipts {
		presses[i].receipt = receipt
	}
	return err
}
