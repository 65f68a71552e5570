package redisstreams

import (
	"sync"
	"sync/atomic"

	"github.com/backstage-go/backstage/runtime/provider"
)

// news tells observers what happens to a provider, and each thing once.
type news struct {
	events provider.Events
	down   atomic.Bool // Disconnected was told last, not Reconnected
	full   atomic.Bool // Blocked was told last, not Unblocked

	mu sync.Mutex // keeps what is told in order
}

func (n *news) emit(e provider.Event) {
	e.Provider = name
	n.events.Emit(e)
}

// lost tells that a server cannot be reached.
func (n *news) lost(err error) {
	n.turn(&n.down, true, provider.Event{Kind: provider.Disconnected, Message: "redis cannot be reached", Err: err})
}

// reached tells that it can.
func (n *news) reached() {
	n.turn(&n.down, false, provider.Event{Kind: provider.Reconnected, Message: "redis can be reached again"})
}

// refused tells that a server takes no more jobs.
func (n *news) refused(err error) {
	n.turn(&n.full, true, provider.Event{Kind: provider.Blocked, Message: "redis takes no jobs", Err: err})
}

// accepted tells that it takes them.
func (n *news) accepted() {
	n.turn(&n.full, false, provider.Event{Kind: provider.Unblocked, Message: "redis takes jobs again"})
}

func (n *news) turn(state *atomic.Bool, to bool, e provider.Event) {
	if state.Load() == to {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if state.CompareAndSwap(!to, to) {
		n.emit(e)
	}
}
