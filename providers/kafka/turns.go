package kafka

import (
	"context"
	"sync"
)

// turns let one call after the other do something, by its name.
type turns struct {
	mu sync.Mutex
	of map[string]chan struct{} // who has its one may
}

// take waits for the turn. Whoever has it gives it back by the returned function.
func (t *turns) take(ctx context.Context, name string) (back func(), err error) {
	t.mu.Lock()
	if t.of == nil {
		t.of = make(map[string]chan struct{})
	}
	turn := t.of[name]
	if turn == nil {
		turn = make(chan struct{}, 1)
		t.of[name] = turn
	}
	t.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
