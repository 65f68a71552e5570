package rabbitmq

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// wire is a network connection that gathers what is written while the system takes
// what was written before: the client writes each message and each acknowledgement
// by itself. It also knows when the broker was last heard.
//
// Write never blocks. The client holds locks while it writes, which it also needs to
// find out that the connection is broken, so whoever has much to write asks for room
// before.
type wire struct {
	net.Conn
	began time.Time
	heard atomic.Int64 // nanoseconds after began
	plain bool

	mu       sync.Mutex
	pending  []byte
	spare    []byte
	appended uint64
	written  uint64
	writing  bool
	err      error
	changed  chan struct{} // closed at the next change that somebody waits for; nil if nobody does
}

// mostPending is how many bytes may wait to be written before new jobs wait, too.
const mostPending = 1 << 20

func newWire(conn net.Conn, plain bool) *wire {
	return &wire{Conn: conn, began: time.Now(), plain: plain}
}

// Read reads, and notes that the broker was heard.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.heard.Store(int64(time.Since(w.began)))
	}
	if err != nil {
		w.fail(err)
	}
	return n, err
}

// silent is for how long the broker has not been heard.
func (w *wire) silent() time.Duration { return time.Since(w.began) - time.Duration(w.heard.Load()) }

// Write takes what is to be written.
func (w *wire) Write(p []byte) (int, error) {
	if w.plain {
		return w.Conn.Write(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	w.pending = append(w.pending, p...)
	w.appended += uint64(len(p))
	if !w.writing {
		w.writing = true
		go w.drain()
	}
	return len(p), nil
}

// drain writes until nothing is left.
func (w *wire) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.pending) > 0 && w.err == nil {
		now := w.pending
		w.pending, w.spare = w.spare[:0], nil
		w.mu.Unlock()
		_, err := w.Conn.Write(now)
		w.mu.Lock()
		if w.spare == nil && cap(now) <= 2*mostPending {
			w.spare = now[:0]
		}
		w.written += uint64(len(now))
		if err != nil {
			w.failLocked(err)
		}
		w.tellLocked()
	}
	w.writing = false
	w.tellLocked()
}

// fail ends the connection, whatever is still to be written.
func (w *wire) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(err)
}

func (w *wire) failLocked(err error) {
	if w.err == nil {
		w.err = err
		_ = w.Conn.Close()
		w.tellLocked()
	}
}

func (w *wire) tellLocked() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// until waits for a state of the wire, or its end, or ctx'.
func (w *wire) until(ctx context.Context, is func() bool) error {
	for {
		w.mu.Lock()
		if err := w.err; err != nil || is() {
			w.mu.Unlock()
			return err
		}
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// room returns when more may be written.
func (w *wire) room(ctx context.Context) error {
	return w.until(ctx, func() bool { return len(w.pending) < mostPending })
}

// flush returns when the system has all that was written before.
func (w *wire) flush(ctx context.Context) error {
	w.mu.Lock()
	all := w.appended
	w.mu.Unlock()
	return w.until(ctx, func() bool { return w.written >= all })
}

// lastWords is how long a connection that is closed may take to write what is left.
const lastWords = 100 * time.Millisecond

// Close closes the connection, when what was written is with the system.
func (w *wire) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	_ = w.flush(ctx)
	w.fail(net.ErrClosed)
	return nil
}
