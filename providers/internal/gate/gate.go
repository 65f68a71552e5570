// Package gate lets calls into a provider until it is closed, and lets whoever closes it
// wait for those that are under way.
package gate

import (
	"context"
	"sync"
)

// Gate counts calls under way. The zero Gate is open.
type Gate struct {
	mu     sync.Mutex
	inside int
	closed bool
	empty  chan struct{} // made by Close, closed when the last has left
}

// Enter reports whether the call may go on. If so, it must Leave.
func (g *Gate) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.inside++
	}
	return !g.closed
}

// Leave ends a call that has entered.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.closed && g.inside == 0 {
		close(g.empty)
	}
}

// Inside returns how many calls are under way.
func (g *Gate) Inside() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside
}

// Close lets nobody enter any more, and waits until all have left; it returns the error
// of ctx if that ends before. It may be called again.
func (g *Gate) Close(ctx context.Context) error {
	g.mu.Lock()
	if !g.closed {
		g.closed, g.empty = true, make(chan struct{})
		if g.inside == 0 {
			close(g.empty)
		}
	}
	empty := g.empty
	g.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-empty: // both were so, and nobody is left
		return nil
	default:
		return ctx.Err()
	}
}
