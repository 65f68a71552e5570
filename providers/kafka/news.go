package kafka

import (
	"maps"
	"sync"

	"github.com/backstage-go/backstage/runtime/provider"
)

// news tells observers what happens to a provider, and each thing once.
type news struct {
	events provider.Events

	mu      sync.Mutex // also keeps what is told in order
	down    map[string]error
	blocked map[string]error // by queue
}

func (n *news) emit(e provider.Event) {
	e.Provider = name
	n.events.Emit(e)
}

// lost tells that a broker cannot be reached, unless another one cannot, either.
func (n *news) lost(address string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down == nil {
		n.down = make(map[string]error)
	}
	first := len(n.down) == 0
	n.down[address] = err
	if first {
		n.emit(provider.Event{Kind: provider.Disconnected, Message: "the broker at " + address + " cannot be reached", Err: err})
	}
}

// reached tells that all brokers can be reached.
func (n *news) reached(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, was := n.down[address]; !was {
		return
	}
	delete(n.down, address)
	if len(n.down) == 0 {
		n.emit(provider.Event{Kind: provider.Reconnected, Message: "kafka can be reached again"})
	}
}

// reason is why some broker cannot be reached; nil if all can.
func (n *news) reason() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, err := range n.down {
		return err
	}
	return nil
}

// alarm tells that a queue's topic takes no jobs, or takes them again.
func (n *news) alarm(queue string, why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if (why != nil) == (n.blocked[queue] != nil) {
		return
	}
	if why == nil {
		delete(n.blocked, queue)
		n.emit(provider.Event{Kind: provider.Unblocked, Queue: queue, Message: "kafka takes jobs again"})
		return
	}
	if n.blocked == nil {
		n.blocked = make(map[string]error)
	}
	n.blocked[queue] = why
	n.emit(provider.Event{Kind: provider.Blocked, Queue: queue, Message: "kafka takes no jobs", Err: why})
}

// alarms are the queues whose topics take no jobs, and why.
func (n *news) alarms() map[string]error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.blocked)
}
