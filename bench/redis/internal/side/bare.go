package side

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/bench/redis/internal/bare"
)

type bareSide struct {
	payloads
	client *redis.Client
	queue  *bare.Queue
}

// NewBare returns the loop that is written by hand.
func NewBare(ctx context.Context, options *redis.Options) (Side, error) {
	client := redis.NewClient(options)
	queue, err := bare.Open(ctx, client)
	if err != nil {
		_ = client.Close() // the error above is the one to tell
		return nil, err
	}
	return &bareSide{newPayloads(), client, queue}, nil
}

func (s *bareSide) Enqueue(_ context.Context, n int) error {
	body, err := s.marshalled(n)
	if err != nil {
		return err
	}
	return s.queue.Enqueue(body)
}

func (s *bareSide) Fill(ctx context.Context, count int) error { return fill(ctx, s, count) }

func (s *bareSide) Start(slots int, ran func(int)) (func() error, error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var failed atomic.Pointer[error]
	go func() {
		err := s.queue.Run(ctx, slots, func(body string) {
			n, err := number([]byte(body))
			if err != nil {
				failed.Store(&err)
				return
			}
			ran(n)
		})
		if wrong := failed.Load(); wrong != nil {
			err = *wrong
		}
		ended <- err
	}()
	return sync.OnceValue(func() error { cancel(); return <-ended }), nil
}

func (s *bareSide) Left(ctx context.Context) (int64, error) {
	if err := s.queue.Err(); err != nil {
		return 0, err
	}
	return s.queue.Left(ctx)
}

func (s *bareSide) Close() error { return s.client.Close() }
