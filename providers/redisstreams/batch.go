package redisstreams

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// batcher gathers what many calls want into few steps, one at a time. Whatever arrives
// while a step is under way is in the next one; nothing waits for company. A call that
// finds nobody at work, and comes alone, does its own step, without a hand-over. Nobody
// runs while there is nothing to do.
type batcher[T any] struct {
	// flush does a batch. It is called by one goroutine at a time.
	flush func(ctx context.Context, batch []T)
	// weigh returns the bytes of one.
	weigh func(T) int

	mu      sync.Mutex
	waiting []T
	spare   []T // of an earlier batch, for the next
	running bool
	idle    chan struct{} // closed when nothing runs; nil if nobody wants to know
}

// A batch has at most so many pieces and, if it has several, so many bytes: while a
// script runs, Redis does nothing else.
const (
	mostPieces = 500
	mostBytes  = 1 << 20
)

// add puts a call's pieces into the next batches. If nothing is under way and nobody
// else comes at this moment, it does its own step, until a moment after the deadline of
// ctx.
func (b *batcher[T]) add(ctx context.Context, pieces []T) {
	if !b.begin(pieces) {
		return
	}
	runtime.Gosched() // who is about to come goes along: a step costs more than a yield
	batch := b.take()
	if len(batch) > len(pieces) { // it has others' pieces, who have more time, or less
		go b.do(batch)
		return
	}
	b.flush(deadlineOf{ctx}, batch)
	if b.done(batch) {
		go b.run()
	}
}

// hand puts a call's pieces into the next batches, and leaves them to others.
func (b *batcher[T]) hand(pieces []T) {
	if b.begin(pieces) {
		go b.run()
	}
}

// begin adds pieces, and reports whether the caller is to see to it that they are done.
func (b *batcher[T]) begin(pieces []T) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, pieces...)
	if b.running || len(b.waiting) == 0 {
		return false
	}
	b.running = true
	return true
}

// deadlineOf is a context that ends a moment after another's deadline, as a call waits
// for what others have under way: a job that finds no room when its time is over is
// refused, and not in doubt. It does not end when the other is cancelled: a step that
// has begun is not given up.
type deadlineOf struct{ context.Context }

func (d deadlineOf) Deadline() (time.Time, bool) {
	at, ok := d.Context.Deadline()
	return at.Add(patience), ok
}

func (deadlineOf) Done() <-chan struct{} { return nil }
func (deadlineOf) Err() error            { return nil }

// run does batches until nothing is left. Before it takes the next one, those whose
// calls have just been answered get their turn, because they may have more.
func (b *batcher[T]) run() {
	runtime.Gosched()
	b.do(b.take())
}

// do does a batch, if there is one, and what follows.
func (b *batcher[T]) do(batch []T) {
	for {
		if len(batch) > 0 {
			b.flush(context.Background(), batch)
		}
		if !b.done(batch) {
			return
		}
		runtime.Gosched()
		batch = b.take()
	}
}

// done takes a batch back when it was flushed, and reports whether there is more.
func (b *batcher[T]) done(batch []T) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(batch) > 0 {
		clear(batch)
		b.spare = batch[:0]
	}
	if len(b.waiting) > 0 {
		return true
	}
	b.running = false
	if b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
	return false
}

// take returns the next batch, which is empty if all was withdrawn.
func (b *batcher[T]) take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		return nil
	}
	n, bytes := 0, 0
	for n < len(b.waiting) && n < mostPieces && (n == 0 || bytes < mostBytes) {
		bytes += b.weigh(b.waiting[n])
		n++
	}
	batch := b.waiting[:n:n]
	if n == len(b.waiting) {
		b.waiting, b.spare = b.spare, nil
	} else {
		b.waiting = b.waiting[n:]
	}
	return batch
}

// withdraw takes back the pieces that are not in a batch yet, and returns them.
func (b *batcher[T]) withdraw(mine func(T) bool) []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	var back, rest []T
	for _, piece := range b.waiting {
		if mine(piece) {
			back = append(back, piece)
		} else {
			rest = append(rest, piece)
		}
	}
	if len(back) > 0 {
		b.waiting = rest
	}
	return back
}

// wait returns when nothing runs, or ctx ends.
func (b *batcher[T]) wait(ctx context.Context) error {
	b.mu.Lock()
	if !b.running {
		b.mu.Unlock()
		return nil
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	idle := b.idle
	b.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
