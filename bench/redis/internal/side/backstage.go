package side

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/providers/redisstreams"
	"github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"

	benchv1 "github.com/backstage-go/backstage/bench/gen/bench/v1"
	"github.com/backstage-go/backstage/bench/gen/bench/v1/worktasks"
	"github.com/backstage-go/backstage/bench/internal/work"
)

// Open opens the provider that is measured, on a server.
func Open(ctx context.Context, options *redis.Options) (*provider.Provider, error) {
	return redisstreams.Open(ctx, redisstreams.Config{
		Options: &redis.UniversalOptions{Addrs: []string{options.Addr}, Dialer: options.Dialer},
	})
}

type backstageSide struct {
	payloads
	provider *provider.Provider
	client   *backstage.Client
}

// NewBackstage returns Backstage.
func NewBackstage(ctx context.Context, options *redis.Options) (Side, error) {
	p, err := Open(ctx, options)
	if err != nil {
		return nil, err
	}
	client, err := backstage.NewClient(p, backstage.ClientConfig{})
	if err != nil {
		return nil, err
	}
	return &backstageSide{newPayloads(), p, client}, nil
}

func (s *backstageSide) Enqueue(ctx context.Context, n int) error {
	_, err := backstage.Enqueue(ctx, s.client, worktasks.PlainJob(s.of(n)))
	return err
}

func (s *backstageSide) Fill(ctx context.Context, count int) error {
	return work.Backlog(ctx, s.client, count, 0)
}

func (s *backstageSide) Start(slots int, ran func(int)) (func() error, error) {
	return StartPlain(s.provider, backstage.WorkerConfig{Concurrency: slots}, func(_ context.Context, in *benchv1.PlainRequest) error {
		ran(int(in.GetNumber()))
		return nil
	})
}

// StartPlain runs a worker for the one task that needs no ordering key until stop is
// called, on its queue and on others.
func StartPlain(p *provider.Provider, config backstage.WorkerConfig, handle func(context.Context, *benchv1.PlainRequest) error, queues ...string) (stop func() error, err error) {
	return work.StartWith(p, config, func(w *backstage.Worker) {
		worktasks.RegisterPlain(w, handle, backstage.Serve(queues...))
	})
}

func (s *backstageSide) Left(ctx context.Context) (int64, error) {
	stats, err := s.provider.Stats.Queue(ctx, work.Queue)
	if err != nil {
		return 0, err
	}
	var left int64
	for _, count := range []provider.Measure[int64]{stats.Depth, stats.InFlight, stats.Held, stats.Dead} {
		n, _ := count.Get()
		left += n
	}
	return left, nil
}

func (s *backstageSide) Close() error { return s.provider.Close(context.Background()) }
