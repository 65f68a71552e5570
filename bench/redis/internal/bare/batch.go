package bare

import (
	"runtime"
	"sync"
)

// batch collects what many goroutines want done and does it together: whatever
// waits when a flush ends is the next one. It waits for nothing, and while nothing
// is to be done nothing runs.
type batch[T any] struct {
	flush func([]T)

	mu      sync.Mutex
	waiting []T
	running bool
}

// do flushes one item here if nothing is being flushed, so that whoever is alone
// pays for no other goroutine, and leaves it to the flush under way otherwise.
func (b *batch[T]) do(one T) {
	b.mu.Lock()
	if b.running {
		b.waiting = append(b.waiting, one)
		b.mu.Unlock()
		return
	}
	b.running = true
	b.mu.Unlock()
	b.flush([]T{one})
	if b.more() {
		go b.run()
	}
}

// yields is how often the others may run before what waits is taken: each that just
// got its answer may bring more.
const yields = 3

// run flushes what waits until nothing does.
func (b *batch[T]) run() {
	var spare []T
	for {
		for range yields {
			runtime.Gosched()
		}
		b.mu.Lock()
		taken := b.waiting
		b.waiting = spare
		b.mu.Unlock()
		b.flush(taken)
		clear(taken)
		spare = taken[:0]
		if !b.more() {
			return
		}
	}
}

// more reports whether something waits. If not, the next item is flushed by whoever
// brings it.
func (b *batch[T]) more() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = len(b.waiting) > 0
	return b.running
}
