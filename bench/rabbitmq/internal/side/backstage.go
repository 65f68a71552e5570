// Package side has what is measured beside each other on RabbitMQ: Backstage, and a
// loop written by hand.
package side

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/providers/rabbitmq"
	"github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"

	benchv1 "github.com/backstage-go/backstage/bench/gen/bench/v1"
	"github.com/backstage-go/backstage/bench/gen/bench/v1/worktasks"
	"github.com/backstage-go/backstage/bench/internal/load"
	"github.com/backstage-go/backstage/bench/internal/work"
)

// Names of the sides.
const (
	Backstage = "backstage"
	Bare      = "bare"
)

// JobsQueue is the queue in RabbitMQ in which Backstage's jobs wait.
const JobsQueue = "backstage.jobs." + work.Queue

type backstageSide struct {
	load.Payloads
	provider *provider.Provider
	client   *backstage.Client
}

// NewBackstage returns Backstage on a server.
func NewBackstage(ctx context.Context, url string) (load.Side, error) {
	p, err := rabbitmq.Open(ctx, rabbitmq.Config{URL: url})
	if err != nil {
		return nil, err
	}
	client, err := backstage.NewClient(p, backstage.ClientConfig{})
	if err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	return &backstageSide{load.NewPayloads(), p, client}, nil
}

func (s *backstageSide) Enqueue(ctx context.Context, n int) error {
	_, err := backstage.Enqueue(ctx, s.client, worktasks.PlainJob(s.Of(n)))
	return err
}

func (s *backstageSide) Batch(ctx context.Context, n, count int) error {
	jobs := make([]backstage.Job, count)
	for i := range jobs {
		jobs[i] = worktasks.PlainJob(s.Of(n + i))
	}
	_, err := s.client.Enqueue(ctx, jobs...)
	return err
}

func (s *backstageSide) Start(slots int, ran func(int)) (func() error, error) {
	return StartPlain(s.provider, backstage.WorkerConfig{Concurrency: slots}, func(_ context.Context, in *benchv1.PlainRequest) error {
		ran(int(in.GetNumber()))
		return nil
	})
}

func (s *backstageSide) Close() error { return s.provider.Close(context.Background()) }

// starting is how long a worker may take until it receives.
const starting = time.Minute

// StartPlain runs a worker for the one task that needs no ordering key until stop is
// called, and returns when it receives.
func StartPlain(p *provider.Provider, config backstage.WorkerConfig, handle func(context.Context, *benchv1.PlainRequest) error) (stop func() error, err error) {
	ready := make(chan struct{})
	config.Observer = func(e backstage.Event) {
		if _, ok := e.(backstage.WorkerStarted); ok {
			close(ready)
		}
	}
	stop, err = work.StartWith(p, config, func(w *backstage.Worker) { worktasks.RegisterPlain(w, handle) })
	if err != nil {
		return nil, err
	}
	select {
	case <-ready:
		return stop, nil
	case <-time.After(starting):
		return nil, errors.Join(fmt.Errorf("the worker does not receive within %v", starting), stop())
	}
}
