package memory

import (
	"context"
	"sync"
)

// gate lets calls in until it is closed, and lets whoever closes it wait for those
// that are under way. Only calls that give up the store's lock need to pass it;
// the lock guards all of it.
type gate struct {
	err     error         // why no call is let in any more; nil while it is open
	closing chan struct{} // closed with it: calls that wait for work end
	gone    chan struct{} // closed when nobody waits any longer: all calls end
	cut     bool          // gone is closed
	inside  int
	empty   chan struct{} // closed when the last call leaves; nil if nobody waits
}

func newGate() gate {
	return gate{closing: make(chan struct{}), gone: make(chan struct{})}
}

func (g *gate) enter() { g.inside++ }

func (g *gate) leave() {
	g.inside--
	if g.inside == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// shut closes the gate, for the reason given first.
func (g *gate) shut(why error) {
	if g.err == nil {
		g.err = why
		close(g.closing)
	}
}

// cutOff ends the calls that are still under way.
func (g *gate) cutOff() {
	if !g.cut {
		g.cut = true
		close(g.gone)
	}
}

// drain waits until the calls inside have left. When ctx ends first, it cuts them
// off and returns its error.
func (g *gate) drain(ctx context.Context, lock *sync.Mutex) error {
	for g.inside > 0 {
		if g.empty == nil {
			g.empty = make(chan struct{})
		}
		empty := g.empty
		lock.Unlock()
		select {
		case <-empty:
			lock.Lock()
		case <-ctx.Done():
			lock.Lock()
			g.cutOff()
			return ctx.Err()
		}
	}
	return nil
}
