package side

import (
	"context"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/bench/internal/work"
)

// AsynqConfig is what may be chosen of asynq. The zero value is asynq's own.
type AsynqConfig struct {
	// Check is how long the worker sleeps, on average, when it finds no job.
	// Defaults to asynq's second.
	Check time.Duration
}

type asynqSide struct {
	payloads
	config    AsynqConfig
	conn      *redis.Client
	client    *asynq.Client
	inspector *asynq.Inspector
}

// AsynqPool is how many connections asynq gets: enough for each producer and each
// handler to have one, because every call of it is a round trip of its own.
const AsynqPool = 200

// NewAsynq returns asynq. Nothing is kept of jobs that are done, which is its
// default.
func NewAsynq(options *redis.Options, config AsynqConfig) Side {
	options.PoolSize = AsynqPool
	conn := redis.NewClient(options)
	return &asynqSide{
		payloads:  newPayloads(),
		config:    config,
		conn:      conn,
		client:    asynq.NewClientFromRedisClient(conn),
		inspector: asynq.NewInspectorFromRedisClient(conn),
	}
}

func (s *asynqSide) Enqueue(ctx context.Context, n int) error {
	body, err := s.marshalled(n)
	if err != nil {
		return err
	}
	_, err = s.client.EnqueueContext(ctx, asynq.NewTask("plain", body), asynq.Queue(work.Queue))
	return err
}

func (s *asynqSide) Fill(ctx context.Context, count int) error { return fill(ctx, s, count) }

func (s *asynqSide) Start(slots int, ran func(int)) (func() error, error) {
	server := asynq.NewServerFromRedisClient(s.conn, asynq.Config{
		Concurrency:       slots,
		Queues:            map[string]int{work.Queue: 1},
		TaskCheckInterval: s.config.Check,
		Logger:            silent{},
	})
	err := server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		n, err := number(task.Payload())
		if err == nil {
			ran(n)
		}
		return err
	}))
	if err != nil {
		return nil, err
	}
	return func() error { server.Shutdown(); return nil }, nil
}

func (s *asynqSide) Left(context.Context) (int64, error) {
	info, err := s.inspector.GetQueueInfo(work.Queue)
	if err != nil {
		return 0, err
	}
	if info.Archived > 0 {
		return 0, fmt.Errorf("asynq has archived %d jobs", info.Archived)
	}
	return int64(info.Pending + info.Active + info.Retry), nil
}

func (s *asynqSide) Close() error { return s.conn.Close() }

// silent drops what asynq has to say: a log line a run is no part of a measurement.
type silent struct{}

func (silent) Debug(...any) {}
func (silent) Info(...any)  {}
func (silent) Warn(...any)  {}
func (silent) Error(...any) {}
func (silent) Fatal(...any) {}

var _ asynq.Logger = silent{}
