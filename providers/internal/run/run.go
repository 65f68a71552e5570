// Package run is how a run ends where a settlement is not one step in a store: what it
// carries is stored first, and then the broker is told. Its rules are those of
// provider.Delivery.
package run

import (
	"context"
	"errors"
	"sync"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Run is what is known of how a run ends. The zero Run has no settlement.
type Run struct {
	mu     sync.Mutex
	kind   Kind // fixed by the first settlement
	state  State
	flight chan struct{} // closed when the settlement under way has ended; nil if none is
	cargo  cargo
}

// Kind is which settlement it is.
type Kind int

// The kinds of settlements.
const (
	_ Kind = iota
	Ack
	Retry
	Dead
	Release
)

// State is what is known of a run.
type State int

const (
	// Open: it is not settled.
	Open State = iota
	// UnderWay: a settlement of it has begun, and has not ended.
	UnderWay
	// Settled: that is on record, or was sent.
	Settled
	// Lost: it is no longer ours.
	Lost
)

// Begin makes the first settlement's kind the only one, and waits for an earlier call of
// the same kind that is under way. After a nil error End must be called. It returns
// provider.ErrSettled for another kind and for what is settled, and a *provider.LostError
// for what is lost.
func (r *Run) Begin(ctx context.Context, kind Kind) error {
	for {
		flight, err := r.begin(kind)
		if flight == nil {
			return err
		}
		select {
		case <-flight:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// begin returns what to wait for first, if there is anything.
func (r *Run) begin(kind Kind) (flight <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == Settled || r.kind != 0 && r.kind != kind {
		return nil, provider.ErrSettled
	}
	r.kind = kind
	switch {
	case r.state == Lost:
		return nil, r.lost()
	case r.flight != nil:
		return r.flight, nil
	}
	r.flight = make(chan struct{})
	return nil, nil
}

// End takes over the outcome of the settlement that has begun, and returns the error to
// answer with.
func (r *Run) End(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.flight)
	r.flight = nil
	switch {
	case err == nil:
		r.state = Settled
	case errors.Is(err, provider.ErrLeaseLost):
		r.state = Lost
		return r.lost()
	}
	return err
}

func (r *Run) lost() error { return &provider.LostError{Stored: r.cargo.stored()} }

// State returns what is known.
func (r *Run) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == Open && r.flight != nil {
		return UnderWay
	}
	return r.state
}
