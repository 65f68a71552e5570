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
	done chan struct{} // has something when all are answered
	gone bool          // the caller has left: answers come too late

	signals *signals // where done is from
}

// begin prepares it for so many pieces.
func (c *call) begin(pieces int, from *signals) {
	c.left, c.done, c.signals = pieces, from.take(), from
}

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
		c.done <- struct{}{}
	}
	c.mu.Unlock()
}

// patience is how long a call whose context has ended waits for what is under way. Its
// outcome would not be known without; a machine with too much to do may stand still for
// a good part of it.
const patience = 500 * time.Millisecond

// wait returns when all is answered. When ctx ends it calls back, which takes back
// and answers what is not under way, and gives the rest a moment. It reports whether
// all was answered; if not, nothing is answered any more.
func (c *call) wait(ctx context.Context, back func()) bool {
	select {
	case <-c.done:
		c.signals.give(c.done)
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

// signals are channels on which nothing is under way: a job needs two for a moment
// each.
type signals struct{ unused sync.Pool }

func (s *signals) take() chan struct{} {
	if c, ok := s.unused.Get().(chan struct{}); ok {
		return c
	}
	return make(chan struct{}, 1)
}

func (s *signals) give(c chan struct{}) { s.unused.Put(c) }
