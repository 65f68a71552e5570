package embedded

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// blockedAfter is how long the writer waits for the file before it says so. Under
// load, processes wait for each other a hundred milliseconds at times.
const blockedAfter = 2 * time.Second

// blockage is what keeps the file from being written, as Health and late callers
// are told. The writer sets it.
type blockage struct {
	why atomic.Pointer[error]
}

// cause returns what is in the way, or nil.
func (b *blockage) cause() error {
	if why := b.why.Load(); why != nil {
		return *why
	}
	return nil
}

// report sets the cause, with an event if it was none before.
func (b *blockage) report(s *store, err error) {
	if b.why.Swap(&err) == nil {
		s.emit(provider.Event{Kind: provider.Blocked, Message: "the file takes no writes", Err: err})
	}
}

// waited reports a long wait for another process.
func (b *blockage) waited(s *store, d time.Duration) {
	if d > blockedAfter {
		b.report(s, fmt.Errorf("embedded file %s: another process has held its write lock for %s, stopped or stuck; let it continue or end it",
			s.path, d.Round(time.Second)))
	}
}

// failed reports an error that every call will meet.
func (b *blockage) failed(s *store, err error) {
	if concernsFile(err) {
		b.report(s, err)
	}
}

// over is called after each transaction that is on record. That a full disk has
// room again is seen only by one that needed some.
func (b *blockage) over(s *store, grew bool) {
	why := b.cause()
	if why == nil || primary(why) == codeFull && !grew {
		return
	}
	b.why.Store(nil)
	s.emit(provider.Event{Kind: provider.Unblocked, Message: "the file takes writes again"})
}

// enter waits for the write lock.
func (w *writer) enter() error {
	for {
		err := w.turn.enter(w.stop, func(waited time.Duration) { w.block.waited(w.store, waited) })
		if err == nil || errors.Is(err, errStopped) {
			return err
		}
		w.block.report(w.store, fmt.Errorf("embedded file %s: locking failed: %w", w.store.path, err))
		if err := pause(time.Minute, w.stop); err != nil {
			return err
		}
	}
}

// beginPatiently begins a transaction, and waits for programs that write without
// our lock.
func (w *writer) beginPatiently() (*transaction, error) {
	since := time.Now()
	for {
		t, err := w.begin()
		if primary(err) != codeBusy {
			return t, err
		}
		waited := time.Since(since)
		w.block.waited(w.store, waited)
		if err := pause(waited, w.stop); err != nil {
			return nil, err
		}
	}
}
