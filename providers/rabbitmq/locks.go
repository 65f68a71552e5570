package rabbitmq

import (
	"context"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// locks let one at a time look through a queue: who looks has all of it, and others
// would see it empty. Between processes a lock is a queue that belongs to a
// connection, and goes with it.
type locks struct {
	mu    sync.Mutex
	inUse map[string]chan struct{}
}

// lock takes a lock, and returns what gives it back.
func (s *store) lock(ctx context.Context, queue string) (unlock func(), err error) {
	key := s.names.lock(queue)
	s.locks.mu.Lock()
	if s.locks.inUse == nil {
		s.locks.inUse = make(map[string]chan struct{})
	}
	turn := s.locks.inUse[key]
	if turn == nil {
		turn = make(chan struct{}, 1)
		s.locks.inUse[key] = turn
	}
	s.locks.mu.Unlock()
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	free := func() { <-turn }
	for wait := firstWait / 10; ; wait = min(2*wait, 4*firstWait) {
		err := s.admin.do(ctx, func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare(key, false, true, true, false, nil)
			return err
		})
		switch {
		case err == nil:
			return func() {
				after, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
				defer cancel()
				_ = s.admin.do(after, func(ch *amqp.Channel) error {
					_, err := ch.QueueDelete(key, false, false, false)
					return err
				})
				free()
			}, nil
		case codeOf(err) == amqp.AccessRefused && s.cfg.Passive:
			return free, nil // this user cannot have one, and must not look from two sides
		case codeOf(err) != amqp.ResourceLocked:
			free()
			return nil, explained(err)
		}
		if !sleep(ctx, wait) {
			free()
			return nil, ctx.Err()
		}
	}
}
