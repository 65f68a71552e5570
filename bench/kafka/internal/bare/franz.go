package bare

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Franz is a queue over the client twmb/franz-go.
type Franz struct {
	address, topic string
	interval       time.Duration
	client         *kgo.Client
}

// NewFranz returns one on a topic that is there. Offsets are committed at an interval.
func NewFranz(address, topic string, interval time.Duration) (*Franz, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0), kgo.RequiredAcks(kgo.AllISRAcks()))
	if err != nil {
		return nil, err
	}
	return &Franz{address, topic, interval, client}, nil
}

// Close closes the client.
func (q *Franz) Close() error {
	q.client.Close()
	return nil
}

// Enqueue returns when the broker has all jobs.
func (q *Franz) Enqueue(ctx context.Context, bodies ...[]byte) error {
	list := make([]*kgo.Record, len(bodies))
	for i, body := range bodies {
		list[i] = &kgo.Record{Value: body}
	}
	return q.client.ProduceSync(ctx, list...).FirstErr()
}

// Start runs a worker with a number of goroutines until stop is called.
func (q *Franz) Start(workers int, handle func(body []byte)) (stop func() error, err error) {
	group, err := kgo.NewClient(kgo.SeedBrokers(q.address), kgo.ConsumerGroup(q.topic), kgo.ConsumeTopics(q.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitMarks(), kgo.AutoCommitInterval(time.Hour))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	jobs := make(chan *kgo.Record, workers)
	failed := make(chan error, 1)
	var pool sync.WaitGroup
	pool.Go(func() {
		defer close(jobs)
		for {
			got := group.PollFetches(ctx)
			if ctx.Err() != nil {
				return
			}
			got.EachRecord(func(r *kgo.Record) { jobs <- r })
		}
	})
	for range workers {
		pool.Go(func() {
			for r := range jobs {
				handle(r.Value)
				group.MarkCommitRecords(r)
			}
		})
	}
	pool.Go(func() { q.commit(ctx, group, failed) })
	return sync.OnceValue(func() error {
		cancel()
		pool.Wait()
		group.Close()
		return firstBut(failed, context.Canceled)
	}), nil
}

// commit commits what was marked, at the interval, until ctx ends.
func (q *Franz) commit(ctx context.Context, group *kgo.Client, failed chan<- error) {
	ticker := time.NewTicker(q.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := group.CommitMarkedOffsets(ctx); err != nil && ctx.Err() == nil {
			failed <- err
			return
		}
	}
}
