package side

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/providers/kafka"
	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"

	benchv1 "github.com/backstage-go/backstage/bench/gen/bench/v1"
	"github.com/backstage-go/backstage/bench/gen/bench/v1/worktasks"
	"github.com/backstage-go/backstage/bench/internal/load"
	"github.com/backstage-go/backstage/bench/internal/work"
	"github.com/backstage-go/backstage/bench/kafka/internal/server"
)

type backstageSide struct {
	load.Payloads
	provider, lender *provider.Provider
	client           *backstage.Client
}

// newBackstage returns Backstage on a server, with Delays and Claims of a store in
// memory: no job of a measurement waits for its time.
func newBackstage(ctx context.Context, on *server.Server) (load.Side, error) {
	lender, err := memory.Open(memory.Config{})
	if err != nil {
		return nil, err
	}
	p, err := kafka.Open(ctx, kafka.Config{Brokers: []string{on.Addr()}, Prefix: on.Fresh(), Partitions: server.Partitions, Replication: 1})
	if err != nil {
		return nil, errors.Join(err, lender.Close(ctx))
	}
	p.Delays, p.Claims = lender.Lend("kafka")
	s := &backstageSide{Payloads: load.NewPayloads(), provider: p, lender: lender}
	if s.client, err = backstage.NewClient(p, backstage.ClientConfig{}); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
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

// starting is how long a worker may take until it receives.
const starting = time.Minute

func (s *backstageSide) Start(slots int, ran func(int)) (stop func() error, err error) {
	ready := make(chan struct{})
	config := backstage.WorkerConfig{Concurrency: slots, Observer: func(e backstage.Event) {
		if _, ok := e.(backstage.WorkerStarted); ok {
			close(ready)
		}
	}}
	stop, err = work.StartWith(s.provider, config, func(w *backstage.Worker) {
		worktasks.RegisterPlain(w, func(_ context.Context, in *benchv1.PlainRequest) error {
			ran(int(in.GetNumber()))
			return nil
		})
	})
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

func (s *backstageSide) Close() error {
	ctx := context.Background()
	return errors.Join(s.provider.Close(ctx), s.lender.Close(ctx))
}
