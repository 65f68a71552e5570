package providertest

import (
	"context"
	"sync"

	"github.com/backstage-go/backstage/runtime/provider"
)

// gate keeps a worker from receiving once it is shut: what it was given before it is
// killed would count a crash of its own.
type gate struct {
	open      context.Context
	close     context.CancelFunc
	receiving sync.Mutex // held while a Receive is under way
}

func newGate() *gate {
	g := &gate{}
	g.open, g.close = context.WithCancel(context.Background())
	return g
}

// shut ends the Receive that is under way, and lets none begin.
func (g *gate) shut() {
	g.close()
	g.receiving.Lock()
	defer g.receiving.Unlock()
}

// receive calls a Receive while the gate is open, and waits for the end of ctx once
// it is shut.
func (g *gate) receive(ctx context.Context, call func(context.Context) ([]provider.Delivery, error)) ([]provider.Delivery, error) {
	ds, err := g.pass(ctx, call)
	if len(ds) > 0 || g.open.Err() == nil {
		return ds, err
	}
	<-ctx.Done()
	return nil, nil
}

func (g *gate) pass(ctx context.Context, call func(context.Context) ([]provider.Delivery, error)) ([]provider.Delivery, error) {
	g.receiving.Lock()
	defer g.receiving.Unlock()
	if g.open.Err() != nil {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.open, cancel)()
	return call(ctx)
}
