package embedded

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// writer is the one goroutine of a provider that writes. It takes what waits, puts
// it into one transaction, answers, and takes again: whatever arrives while the
// disk syncs shares the next sync.
type writer struct {
	store   *store
	conn    *connection
	insert  insertings
	args    []any                // of the statement that inserts rows
	queues  map[scopedName]int64 // those on record
	serial  int64                // of the last transaction
	turn    turnstile
	standby standby
	upkeep  upkeep
	block   blockage
	looked  time.Time // when look was last called
	timer   *time.Timer

	answered sync.Pool // channels of requests

	mu      sync.Mutex
	waiting []piece
	spare   []piece
	closed  bool

	signal chan struct{} // something waits
	drain  chan struct{} // closed: end when nothing waits
	stop   chan struct{} // closed: end now
	ended  chan struct{}

	ending, cutting sync.Once
}

func newWriter(s *store) *writer {
	return &writer{
		store: s, conn: s.conn,
		insert: newInsertings(),
		queues: make(map[scopedName]int64),
		turn:   turnstile{side: s.side},
		looked: time.Now(),
		timer:  time.NewTimer(time.Hour),
		signal: make(chan struct{}, 1),
		drain:  make(chan struct{}),
		stop:   make(chan struct{}),
		ended:  make(chan struct{}),
	}
}

// submit hands a piece to the writer.
func (w *writer) submit(p piece) error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return provider.ErrClosed
	}
	w.waiting = append(w.waiting, p)
	w.mu.Unlock()
	w.rouse()
	return nil
}

// rouse lets the writer look for something to do.
func (w *writer) rouse() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// run is the writer's goroutine. It ends when the provider is closed.
func (w *writer) run() {
	defer close(w.ended)
	defer w.abandonAll()
	for w.wait() {
		if err := w.round(); errors.Is(err, errStopped) {
			return
		}
	}
}

// wait sleeps until there is something to do, and reports whether to go on.
func (w *writer) wait() bool {
	rest := w.nextLook() - time.Since(w.looked)
	if rest <= 0 {
		w.look()
		return true
	}
	w.timer.Reset(rest)
	select {
	case <-w.stop:
		return false
	case <-w.drain:
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.waiting) > 0
	case <-w.signal:
	case <-w.store.waker.poked():
		w.look()
	case <-w.timer.C:
		w.look()
	}
	return true
}

// round does one transaction's work, if there is any.
func (w *writer) round() error {
	if !w.busy() {
		return nil
	}
	if err := w.enter(); err != nil {
		return err
	}
	b := w.collect()
	if b.empty() {
		w.turn.leave()
		return nil
	}
	w.process(b)
	return nil
}

// busy reports whether something waits or should be tried again.
func (w *writer) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) > 0 || w.standby.due
}

// yields is how often the writer lets others run before it takes what waits: each
// that just got its answer may bring more, for which another sync would be due.
const yields = 3

// mostPieces bounds what a transaction takes at once, so that nobody waits long for its
// end.
const mostPieces = 2048

// collect takes what waits, and what stands by.
func (w *writer) collect() *batch {
	for range yields {
		runtime.Gosched()
	}
	w.mu.Lock()
	list := w.waiting
	w.waiting = w.spare[:0]
	if len(list) > mostPieces {
		w.waiting = append(w.waiting, list[mostPieces:]...)
		list = list[:mostPieces]
		w.rouse()
	}
	w.mu.Unlock()
	b := new(batch)
	w.standby.collect(b)
	for i, p := range list {
		if p.base().take() {
			b.add(p)
		}
		list[i] = nil
	}
	w.mu.Lock()
	w.spare = list[:0]
	w.mu.Unlock()
	return b
}

// process does a batch, and answers all of it. The write lock is given back before
// the answers, if all went well.
func (w *writer) process(b *batch) {
	t, err := w.attempt(b, true)
	if err == nil {
		w.turn.leave()
		w.after(b, t)
		return
	}
	w.rescue(b, err)
	w.turn.leave()
}

// attempt does a batch in one transaction. If it is open to others, what has come while
// it was written joins it, before clients' jobs and receivers have their turn: those who
// have just been answered prepare their next calls beside the writer, and share this sync.
func (w *writer) attempt(b *batch, open bool) (*transaction, error) {
	if err := w.store.inPlace(); err != nil {
		return nil, err
	}
	t, err := w.beginPatiently()
	if err != nil {
		return nil, err
	}
	w.point("begun")
	b.apply(t)
	if open && t.err == nil {
		late := w.collect()
		late.apply(t)
		b.join(late)
	}
	b.start(t)
	return t, t.commit()
}

// after tells of a transaction that is on record: callers, other processes,
// promoters.
func (w *writer) after(b *batch, t *transaction) {
	w.block.over(w.store, t.grew)
	w.upkeep.wrote = w.upkeep.wrote || t.wrote
	if t.stir {
		w.store.waker.wake()
	}
	for _, e := range t.events {
		w.store.emit(e)
	}
	w.standby.meet(w, t.lanes)
	b.finish(w, nil)
	for _, due := range t.due {
		w.store.promoters.tell(due)
	}
}

// fail answers a batch with an error.
func (w *writer) fail(b *batch, err error) {
	w.block.failed(w.store, err)
	b.finish(w, err)
}

// abandonAll answers what nobody will do any more.
func (w *writer) abandonAll() {
	w.mu.Lock()
	w.closed = true
	list := w.waiting
	w.waiting = nil
	w.mu.Unlock()
	b := new(batch)
	w.standby.collect(b)
	for _, p := range list {
		if p.base().take() {
			b.add(p)
		}
	}
	b.finish(w, provider.ErrClosed)
}

// finish lets the writer end: when nothing waits any more, or at once when ctx ends.
// It may be called again, and reports whether the writer has ended.
func (w *writer) finish(ctx context.Context) bool {
	w.ending.Do(func() { close(w.drain) })
	select {
	case <-w.ended:
		return true
	case <-ctx.Done():
	}
	w.cutting.Do(func() { close(w.stop) })
	select {
	case <-w.ended:
		return true
	case <-time.After(time.Second): // it is in a transaction, on a disk that hangs
		return false
	}
}

// whyLate says why a call's context ended before its answer.
func (w *writer) whyLate(ctx context.Context) error {
	if blocked := w.block.cause(); blocked != nil {
		return fmt.Errorf("%w: %w", ctx.Err(), blocked)
	}
	return ctx.Err()
}

// point is where tests end the process.
func (w *writer) point(name string) {
	if w.store.in.hook != nil {
		w.store.in.hook(name)
	}
}
