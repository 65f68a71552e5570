// Package bare has two job queues on Kafka as one writes them by hand for one program:
// a topic, a consumer group, a number of goroutines. There are no ids, attempts, delays
// or dead letters, and offsets are committed behind what was received, so that a crash
// loses what ran.
package bare

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// Segmentio is a queue over a Writer and a Reader of segmentio/kafka-go, the client that
// the provider uses.
type Segmentio struct {
	address, topic string
	interval       time.Duration
	writer         *kafka.Writer
}

// NewSegmentio returns one on a topic that is there. Offsets are committed at an
// interval.
func NewSegmentio(address, topic string, interval time.Duration) *Segmentio {
	return &Segmentio{address, topic, interval, &kafka.Writer{
		Addr: kafka.TCP(address), Topic: topic, RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond, BatchSize: 1000,
	}}
}

// Close closes the writer.
func (q *Segmentio) Close() error { return q.writer.Close() }

// Enqueue returns when the broker has all jobs.
func (q *Segmentio) Enqueue(ctx context.Context, bodies ...[]byte) error {
	list := make([]kafka.Message, len(bodies))
	for i, body := range bodies {
		list[i].Value = body
	}
	return q.writer.WriteMessages(ctx, list...)
}

// Start runs a worker with a number of goroutines until stop is called.
func (q *Segmentio) Start(workers int, handle func(body []byte)) (stop func() error, err error) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{q.address}, Topic: q.topic, GroupID: q.topic, StartOffset: kafka.FirstOffset,
		MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 500 * time.Millisecond, CommitInterval: q.interval,
	})
	ctx, cancel := context.WithCancel(context.Background())
	jobs := make(chan kafka.Message, workers)
	failed := make(chan error, 1+workers)
	var pool sync.WaitGroup
	pool.Go(func() {
		defer close(jobs)
		for {
			m, err := reader.FetchMessage(ctx)
			if err != nil {
				failed <- err
				return
			}
			jobs <- m
		}
	})
	for range workers {
		pool.Go(func() {
			for m := range jobs {
				handle(m.Value)
				if err := reader.CommitMessages(ctx, m); err != nil {
					failed <- err
				}
			}
		})
	}
	return sync.OnceValue(func() error {
		cancel()
		pool.Wait()
		return errors.Join(reader.Close(), firstBut(failed, context.Canceled))
	}), nil
}

// firstBut returns the first error in a channel that is not of one kind.
func firstBut(failed <-chan error, kind error) error {
	for {
		select {
		case err := <-failed:
			if !errors.Is(err, kind) {
				return err
			}
		default:
			return nil
		}
	}
}
