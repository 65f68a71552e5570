package side

import (
	"context"
	"sync"
	"sync/atomic"
)

// fillers is how many producers fill a queue that takes one job at a time.
const fillers = 64

// fill stores jobs by many producers.
func fill(ctx context.Context, s Side, count int) error {
	return Produce(ctx, s, fillers, count)
}

// Produce stores the jobs below count by a number of producers, each of which
// waits for its job before it goes on to the next. It returns the first error.
func Produce(ctx context.Context, s Side, producers, count int) error {
	var (
		group  sync.WaitGroup
		next   atomic.Int64
		failed atomic.Pointer[error]
	)
	for range producers {
		group.Go(func() {
			for n := int(next.Add(1)) - 1; n < count && failed.Load() == nil; n = int(next.Add(1)) - 1 {
				if err := s.Enqueue(ctx, n); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
