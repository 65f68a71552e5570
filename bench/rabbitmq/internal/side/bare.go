package side

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/backstage-go/backstage/bench/internal/load"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/bare"
)

type bareSide struct {
	load.Payloads
	queue *bare.Queue
}

// NewBare returns the loop that is written by hand, on a server.
func NewBare(url string) (load.Side, error) {
	queue, err := bare.Open(url)
	if err != nil {
		return nil, err
	}
	return &bareSide{load.NewPayloads(), queue}, nil
}

func (s *bareSide) Enqueue(_ context.Context, n int) error {
	body, err := s.Marshalled(n)
	if err != nil {
		return err
	}
	return s.queue.Enqueue(body)
}

func (s *bareSide) Batch(_ context.Context, n, count int) (err error) {
	bodies := make([][]byte, count)
	for i := range bodies {
		if bodies[i], err = s.Marshalled(n + i); err != nil {
			return err
		}
	}
	return s.queue.Batch(bodies)
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

func (s *bareSide) Close() error { return s.queue.Close() }
