// Package batch gathers what many calls want into few steps.
package batch

import (
	"context"
	"runtime"
	"sync"
)

// Batcher gathers what many calls want into few steps. Whatever arrives while a step
// is under way is in the next one; nobody runs while there is nothing to do.
type Batcher[T any] struct {
	// Flush does a batch, which is its own until it returns. It is called by one goroutine
	// at a time. Required.
	Flush func(batch []T)

	mu      sync.Mutex
	waiting []T
	spare   []T // of an earlier batch, for the next
	running bool
	idle    chan struct{} // closed when nothing runs; nil if nobody wants to know
}

// Add puts one into the next batch.
func (b *Batcher[T]) Add(one T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, one)
	if !b.running {
		b.running = true
		go b.run()
	}
}

func (b *Batcher[T]) run() {
	for {
		runtime.Gosched() // so that those who are about to add something are in this batch
		batch := b.next()
		if batch == nil {
			return
		}
		b.Flush(batch)
		clear(batch)
		b.mu.Lock()
		b.spare = batch[:0]
		b.mu.Unlock()
	}
}

// next returns what waits, or nil when there is nothing and the goroutine ends.
func (b *Batcher[T]) next() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.running = false
		if b.idle != nil {
			close(b.idle)
			b.idle = nil
		}
		return nil
	}
	batch := b.waiting
	b.waiting, b.spare = b.spare, nil
	return batch
}

// Wait returns when nothing runs, or ctx ends.
func (b *Batcher[T]) Wait(ctx context.Context) error {
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
