package rabbitmq

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// link keeps one connection up: when it ends, another one is made, until the link
// is closed.
type link struct {
	dial func(ctx context.Context) (*connection, error)
	news *news

	closing context.Context
	stop    context.CancelFunc
	ended   chan struct{} // closed when nothing of the link runs

	mu      sync.Mutex
	current *connection
	err     error         // why there is none
	changed chan struct{} // closed at the next change
}

// newLink returns a link with its first connection.
func newLink(ctx context.Context, n *news, dial func(ctx context.Context) (*connection, error)) (*link, error) {
	first, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	l := &link{dial: dial, news: n, ended: make(chan struct{}), current: first, changed: make(chan struct{})}
	l.closing, l.stop = context.WithCancel(context.Background())
	go l.keep(first)
	return l, nil
}

// Between two attempts to connect.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = 2 * time.Second
)

// keep replaces the connection whenever it ends.
func (l *link) keep(c *connection) {
	defer close(l.ended)
	for {
		select {
		case <-c.closed:
		case <-l.closing.Done():
			return
		}
		l.set(nil, c.why)
		c.wire.fail(c.why)
		if c = l.again(); c == nil {
			return
		}
		l.set(c, nil)
	}
}

// again connects until it succeeds; nil when the link is closed.
func (l *link) again() *connection {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		c, err := l.dial(l.closing)
		if err == nil {
			return c
		}
		if l.closing.Err() != nil {
			return nil
		}
		l.set(nil, err)
		if !sleep(l.closing, wait) {
			return nil
		}
	}
}

func (l *link) set(c *connection, err error) {
	l.mu.Lock()
	l.current, l.err = c, err
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	if c != nil {
		l.news.reached(l)
	} else {
		l.news.lost(l, err)
	}
}

// state returns the connection, or why there is none, and what is closed when that
// changes.
func (l *link) state() (*connection, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current, l.changed, l.err
}

// up waits for a connection. When ctx ends it says why there is none.
func (l *link) up(ctx context.Context) (*connection, error) {
	for {
		c, changed, why := l.state()
		if c != nil && !c.over() {
			return c, nil
		}
		select {
		case <-changed:
		case <-l.closing.Done():
			return nil, provider.ErrClosed
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), why)
		}
	}
}

// close ends the link: politely until ctx ends.
func (l *link) close(ctx context.Context) {
	l.stop()
	<-l.ended
	l.news.forget(l)
	if c, _, _ := l.state(); c != nil {
		c.close(ctx)
		<-c.closed
	}
}

// sleep waits, and reports whether ctx is still on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
