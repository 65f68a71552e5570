package rabbitmq

import (
	"context"

	"github.com/backstage-go/backstage/runtime/provider"
)

// delays are provider.Delays: the ladder. The broker itself moves what is due.
type delays struct{ store *store }

// Hold keeps jobs until they are due: provider.Delays.
func (d *delays) Hold(ctx context.Context, jobs []provider.Job) []provider.Stored {
	return d.store.put(ctx, jobs, func(*provider.Job) error { return nil })
}

// Promote has nothing to do, and waits: provider.Delays.
func (d *delays) Promote(ctx context.Context, _ provider.Publish) error {
	if !d.store.calls.Enter() {
		return provider.ErrClosed
	}
	defer d.store.calls.Leave()
	select {
	case <-ctx.Done():
		return nil
	case <-d.store.closing.Done():
		return provider.ErrClosed
	}
}

// Cancel finds nothing, because a job in the ladder has no address: provider.Delays.
func (d *delays) Cancel(context.Context, string) ([]provider.Job, error) {
	return nil, d.store.whenClosed()
}

// Held cannot tell: the queues of the ladder are shared by all: provider.Delays.
func (d *delays) Held(context.Context, string) (provider.Measure[int64], error) {
	return provider.Measure[int64]{}, d.store.whenClosed()
}

// Facts describes the ladder: provider.Delays.
func (d *delays) Facts() provider.DelayFacts {
	return provider.DelayFacts{Finest: ladderGrain, Longest: longestDelay}
}
