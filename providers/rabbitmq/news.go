package rabbitmq

import (
	"sync"

	"github.com/backstage-go/backstage/runtime/provider"
)

// news tells observers what happens to a provider, and each thing once.
type news struct {
	events provider.Events

	mu      sync.Mutex // also keeps what is told in order
	down    map[any]bool
	blocked bool
}

func (n *news) emit(e provider.Event) {
	e.Provider = name
	n.events.Emit(e)
}

// lost tells that a connection is gone, unless another one is, too.
func (n *news) lost(who any, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down == nil {
		n.down = make(map[any]bool)
	}
	first := len(n.down) == 0
	n.down[who] = true
	if first {
		n.emit(provider.Event{Kind: provider.Disconnected, Message: "a connection to rabbitmq is lost", Err: err})
	}
}

// reached tells that all connections are there.
func (n *news) reached(who any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.down[who] {
		return
	}
	delete(n.down, who)
	if len(n.down) == 0 {
		n.emit(provider.Event{Kind: provider.Reconnected, Message: "rabbitmq can be reached again"})
	}
}

// forget takes a connection out that nobody needs any more.
func (n *news) forget(who any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.down, who)
}

// alarm tells that the broker takes no jobs, or takes them again.
func (n *news) alarm(blocked bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if blocked == n.blocked {
		return
	}
	n.blocked = blocked
	if blocked {
		n.emit(provider.Event{Kind: provider.Blocked, Message: "rabbitmq takes no jobs", Err: err})
	} else {
		n.emit(provider.Event{Kind: provider.Unblocked, Message: "rabbitmq takes jobs again"})
	}
}
