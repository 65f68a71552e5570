package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// parcel is one record on its way to a topic.
type parcel struct {
	key, value []byte
	headers    []kafkago.Header

	call *call
	// These are guarded by the call.
	state   state
	outcome provider.Outcome
	err     error
}

// state is how far a parcel is.
type state int

const (
	waits  state = iota // nothing of it was sent, or it is known not to be stored
	flies               // it was sent
	landed              // its outcome is known, or nobody wants to know it any more
)

// call is what one caller waits for: the outcomes of its parcels.
type call struct {
	mu   sync.Mutex
	left int
	done chan struct{}
}

func newCall(parcels []*parcel) *call {
	c := &call{left: len(parcels), done: make(chan struct{})}
	for _, p := range parcels {
		p.call = c
	}
	return c
}

// take reports whether a parcel is still to be sent, and says that it is.
func (p *parcel) take() bool {
	p.call.mu.Lock()
	defer p.call.mu.Unlock()
	if p.state != waits {
		return false
	}
	p.state = flies
	return true
}

// back says that a parcel that was sent is not stored, and may be sent again.
func (p *parcel) back(why error) {
	p.call.mu.Lock()
	defer p.call.mu.Unlock()
	if p.state == flies {
		p.state, p.err = waits, why
	}
}

// land says what became of a parcel.
func (p *parcel) land(outcome provider.Outcome, err error) {
	p.call.mu.Lock()
	defer p.call.mu.Unlock()
	p.landLocked(outcome, err)
}

func (p *parcel) landLocked(outcome provider.Outcome, err error) {
	if p.state == landed {
		return
	}
	p.state, p.outcome, p.err = landed, outcome, err
	if p.call.left--; p.call.left == 0 {
		close(p.call.done)
	}
}

// patience is how long a call whose context has ended waits for an answer that is
// under way: most are.
const patience = 250 * time.Millisecond

// wait returns when the outcome of every parcel is known, or ctx has ended. What was
// not sent then never will be.
func (c *call) wait(ctx context.Context, parcels []*parcel) {
	select {
	case <-c.done:
		return
	case <-ctx.Done():
	}
	c.abandon(ctx, parcels, false)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		c.abandon(ctx, parcels, true)
	}
}

// abandon lands what was not sent, or all, for a caller who waits no longer.
func (c *call) abandon(ctx context.Context, parcels []*parcel, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range parcels {
		switch {
		case p.state == waits:
			p.landLocked(provider.OutcomeRefused, waited(ctx, p.err))
		case p.state == flies && all:
			p.landLocked(provider.OutcomeUnknown, fmt.Errorf("sent and not confirmed yet: %w", ctx.Err()))
		}
	}
}
