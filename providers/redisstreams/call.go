package redisstreams

import (
	"context"
	"sync"
	"time"
)

// call is a call whose pieces are in batches. Each piece is answered once, by who
// flushed it or by the caller who took it back.
type call struct {
	mu   sync.Mutex
	left int
	done chan struct{}
	gone bool // the caller has left: answers come too late
}

// begin prepares it for so many pieces.
func (c *call) begin(pieces int) { c.left, c.done = pieces, make(chan struct{}) }

// open reports whether its caller waits still. If so, one piece is to be answered,
// and then answered called.
func (c *call) open() bool {
	c.mu.Lock()
	if c.gone {
		c.mu.Unlock()
		return false
	}
	return true
}

func (c *call) answered() {
	c.left--
	if c.left == 0 {
		close(c.done)
	}
	c.mu.Unlock()
}

// patience is how long a call whose context has ended waits for what is under way.
const patience = 250 * time.Millisecond

// wait returns when all is answered. When ctx ends it calls back, which takes back
// and answers what is not under way, and gives the rest a moment. It reports whether
// all was answered; if not, nothing is answered any more.
func (c *call) wait(ctx context.Context, back func()) bool {
	select {
	case <-c.done:
		return true
	case <-ctx.Done():
	}
	back()
	giveUp := time.NewTimer(patience)
	defer giveUp.Stop()
	select {
	case <-c.done:
		return true
	case <-giveUp.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = c.left > 0
	return !c.gone
}
