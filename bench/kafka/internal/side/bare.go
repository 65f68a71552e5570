package side

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/backstage-go/backstage/bench/internal/load"
)

// queue is one that was written by hand.
type queue interface {
	Enqueue(ctx context.Context, bodies ...[]byte) error
	Start(workers int, handle func(body []byte)) (stop func() error, err error)
	Close() error
}

type bareSide struct {
	load.Payloads
	queue
}

func newBare(q queue) load.Side { return &bareSide{load.NewPayloads(), q} }

func (s *bareSide) Enqueue(ctx context.Context, n int) error { return s.Batch(ctx, n, 1) }

func (s *bareSide) Batch(ctx context.Context, n, count int) (err error) {
	bodies := make([][]byte, count)
	for i := range bodies {
		if bodies[i], err = s.Marshalled(n + i); err != nil {
			return err
		}
	}
	return s.queue.Enqueue(ctx, bodies...)
}

func (s *bareSide) Start(slots int, ran func(int)) (func() error, error) {
	var failed atomic.Pointer[error]
	stop, err := s.queue.Start(slots, func(body []byte) {
		n, err := load.Number(body)
		if err != nil {
			failed.Store(&err)
			return
		}
		ran(n)
	})
	if err != nil {
		return nil, err
	}
	return func() error {
		err := stop()
		if wrong := failed.Load(); wrong != nil {
			err = errors.Join(err, *wrong)
		}
		return err
	}, nil
}
