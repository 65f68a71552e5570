package backstage

import (
	"context"
	"sync"
	"time"
)

// runContext is a handler's context: it ends at the run's deadline, when the lease
// is lost, and when the worker stops, with the cause, and it carries the run.
//
// What a context needs to tell others of its end (a timer, a place in its parent's
// list, a channel) costs more than everything else around a short job, and a
// handler that waits for nothing never asks. So it is made when somebody asks.
type runContext struct {
	parent   context.Context
	run      *Run
	deadline time.Time

	mu    sync.Mutex
	inner context.Context // nil until somebody asks
	stop  context.CancelFunc
	end   context.CancelCauseFunc
	cause error // why it ended before that
}

// Deadline returns when the run must end.
func (c *runContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done returns a channel that is closed at the context's end.
func (c *runContext) Done() <-chan struct{} { return c.whole().Done() }

// Err returns nil until the context's end.
func (c *runContext) Err() error {
	if c.quiet() {
		return nil
	}
	return c.whole().Err()
}

// Value returns the run, or what the context has: package context asks for what
// it needs to make contexts of this one.
func (c *runContext) Value(key any) any {
	if key == (infoKey{}) {
		return c.run
	}
	return c.whole().Value(key)
}

// quiet reports whether nobody has asked, and the context has not ended.
func (c *runContext) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inner == nil && c.cause == nil && c.parent.Err() == nil && !c.late()
}

// whole returns the context that tells of its end.
func (c *runContext) whole() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner != nil {
		return c.inner
	}
	parent := c.parent
	if c.cause != nil || c.late() {
		parent = context.WithoutCancel(parent) // its end came later
	}
	ctx, end := context.WithCancelCause(parent)
	if c.cause != nil {
		end(c.cause)
	}
	c.end = end
	c.inner, c.stop = context.WithDeadlineCause(ctx, c.deadline, ErrTimeout)
	return c.inner
}

// late reports whether the deadline has passed.
func (c *runContext) late() bool { return !time.Now().Before(c.deadline) }

// cancel ends the context. The first cause counts, also where nobody has asked: a run
// that is late is so, whatever ends it then.
func (c *runContext) cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner != nil {
		c.end(cause)
	} else if c.cause == nil && !c.late() {
		c.cause = cause
	}
}

// release ends the context when the handler has returned.
func (c *runContext) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner != nil {
		c.end(context.Canceled)
		c.stop()
	} else if c.cause == nil {
		c.cause = context.Canceled
	}
}
