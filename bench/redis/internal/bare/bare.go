// Package bare is a job queue on Redis Streams as one writes it by hand for one
// program: a stream, a group, one reader, a number of goroutines. There are no ids
// but the stream's, no keys, no delays, no leases, no fences, no attempts, no dead
// letters: who dies with a job has lost it for the others until somebody looks.
//
// It is written to be fast, with the client that the provider uses and with
// batches like the provider's, so that the difference is the price of the rest.
// Jobs that wait to be stored go in one pipeline of XADD; one XREADGROUP reads as
// many as there are goroutines; done jobs go in one XACK and one XDEL.
package bare

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	stream   = "bare:jobs"
	group    = "workers"
	consumer = "one"
	field    = "body"
)

// Queue is a stream and its group.
type Queue struct {
	client *redis.Client
	adds   batch[addition]
	acks   batch[string]

	done   atomic.Int64 // jobs that are gone from the stream
	failed atomic.Pointer[error]
}

type addition struct {
	body []byte
	done chan<- error
}

// Open makes the stream on a server, through a client that the caller closes.
func Open(ctx context.Context, client *redis.Client) (*Queue, error) {
	q := &Queue{client: client}
	q.adds.flush = q.store
	q.acks.flush = q.remove
	return q, client.XGroupCreateMkStream(ctx, stream, group, "0").Err()
}

// Enqueue returns when the server has answered for the job.
func (q *Queue) Enqueue(body []byte) error {
	done := make(chan error, 1)
	q.adds.do(addition{body, done})
	return <-done
}

// store adds jobs in one pipeline.
func (q *Queue) store(list []addition) {
	ctx := context.Background()
	added, _ := q.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each has its own error
		for _, one := range list {
			p.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []any{field, one.body}})
		}
		return nil
	})
	for i, one := range list {
		one.done <- added[i].Err()
	}
}

// remove takes done jobs out of the group's books and of the stream.
func (q *Queue) remove(ids []string) {
	ctx := context.Background()
	_, err := q.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.XAck(ctx, stream, group, ids...)
		p.XDel(ctx, stream, ids...)
		return nil
	})
	if err != nil {
		q.failed.Store(&err)
		return
	}
	q.done.Add(int64(len(ids)))
}

// block is how long a read waits for jobs.
const block = time.Second

// Run works until ctx has ended, with a number of workers. Jobs that were read by
// then are handled and removed.
func (q *Queue) Run(ctx context.Context, workers int, handle func(body string)) error {
	jobs := make(chan redis.XMessage, workers)
	var pool sync.WaitGroup
	for range workers {
		pool.Go(func() {
			for job := range jobs {
				body, _ := job.Values[field].(string) // nobody else writes into the stream
				handle(body)
				q.acks.do(job.ID)
			}
		})
	}
	read, err := q.read(ctx, workers, jobs)
	close(jobs)
	pool.Wait()
	if err != nil {
		return err
	}
	for q.done.Load() < int64(read) && q.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	return q.Err()
}

// read hands the stream's entries to the workers, and returns how many.
func (q *Queue) read(ctx context.Context, count int, jobs chan<- redis.XMessage) (total int, err error) {
	for ctx.Err() == nil && q.Err() == nil {
		streams, err := q.client.XReadGroup(context.WithoutCancel(ctx), &redis.XReadGroupArgs{
			Group: group, Consumer: consumer, Streams: []string{stream, ">"}, Count: int64(count), Block: block,
		}).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return total, err
		}
		for _, job := range streams[0].Messages {
			jobs <- job
			total++
		}
	}
	return total, nil
}

// Left returns how many jobs the stream has, those that run included.
func (q *Queue) Left(ctx context.Context) (int64, error) {
	return q.client.XLen(ctx, stream).Result()
}

// Err returns what kept a done job from being removed.
func (q *Queue) Err() error {
	if err := q.failed.Load(); err != nil {
		return *err
	}
	return nil
}
