package redisstreams

import (
	"context"
	"sync"
)

// batcher gathers what many calls want into few steps. Whatever arrives while a
// step is under way is in the next one; nothing waits for company. Nobody runs
// while there is nothing to do.
type batcher[T any] struct {
	// flush does a batch. It is called by one goroutine at a time.
	flush func(batch []T)
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

// add puts pieces into the next batches.
func (b *batcher[T]) add(pieces ...T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, pieces...)
	if !b.running {
		b.running = true
		go b.run()
	}
}

func (b *batcher[T]) run() {
	for {
		batch := b.take()
		if batch == nil {
			return
		}
		b.flush(batch)
		b.mu.Lock()
		clear(batch)
		b.spare = batch[:0]
		b.mu.Unlock()
	}
}

// take returns the next batch, or nil when there is nothing and the goroutine ends.
func (b *batcher[T]) take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, bytes := 0, 0
	for n < len(b.waiting) && n < mostPieces && (n == 0 || bytes < mostBytes) {
		bytes += b.weigh(b.waiting[n])
		n++
	}
	if n == 0 {
		b.running = false
		if b.idle != nil {
			close(b.idle)
			b.idle = nil
		}
		return nil
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
