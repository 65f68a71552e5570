// Package work is the job that all measurements run: it does nothing but count.
package work

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"

	benchv1 "github.com/backstage-go/backstage/bench/gen/bench/v1"
	"github.com/backstage-go/backstage/bench/gen/bench/v1/worktasks"
)

// Queue is the queue of all jobs.
const Queue = "work"

// Request returns the payload of a job, 96 bytes or so.
func Request(n int) *benchv1.PlainRequest {
	return &benchv1.PlainRequest{
		Number:   int64(n),
		OrderId:  fmt.Sprintf("A-%012d-%024d", n, n),
		Customer: "Ada Lovelace, 12 St James's Square, London",
		Cents:    129900,
	}
}

// Requests returns that many payloads.
func Requests(count int) []*benchv1.PlainRequest {
	list := make([]*benchv1.PlainRequest, count)
	for i := range list {
		list[i] = Request(i)
	}
	return list
}

// Keyed returns the payload of a job of the one account.
func Keyed(n int) *benchv1.KeyedRequest {
	return &benchv1.KeyedRequest{Number: int64(n), AccountId: "A-1009"}
}

// Counter is the handler. It counts, and tells when enough plain jobs have run.
type Counter struct {
	want         int64
	done         chan struct{}
	plain, keyed atomic.Int64
}

var _ worktasks.Handler = (*Counter)(nil)

// NewCounter returns a handler that waits for a number of plain jobs.
func NewCounter(want int) *Counter {
	return &Counter{want: int64(want), done: make(chan struct{})}
}

// Plain counts.
func (c *Counter) Plain(context.Context, *benchv1.PlainRequest) error {
	if c.plain.Add(1) == c.want {
		close(c.done)
	}
	return nil
}

// Keyed counts.
func (c *Counter) Keyed(context.Context, *benchv1.KeyedRequest) error {
	c.keyed.Add(1)
	return nil
}

// Done is closed when the plain jobs that were waited for have run.
func (c *Counter) Done() <-chan struct{} { return c.done }

// Ran returns how many plain jobs have run.
func (c *Counter) Ran() int { return int(c.plain.Load()) }

// RanKeyed returns how many jobs of the one account have run.
func (c *Counter) RanKeyed() int { return int(c.keyed.Load()) }

// Client returns a client and, over it, that of the tasks.
func Client(p *provider.Provider) (*backstage.Client, *worktasks.Client, error) {
	client, err := backstage.NewClient(p, backstage.ClientConfig{})
	if err != nil {
		return nil, nil, err
	}
	tasks, err := worktasks.NewClient(client)
	return client, tasks, err
}

// Start runs a worker until stop is called, which returns what Run returned.
func Start(p *provider.Provider, slots int, handler worktasks.Handler) (stop func() error, err error) {
	return StartWith(p, backstage.WorkerConfig{Concurrency: slots}, func(w *backstage.Worker) { worktasks.Register(w, handler) })
}

// StartWith does the same with a configuration, in which the logger is replaced by
// one that drops everything, and with what is registered.
func StartWith(p *provider.Provider, config backstage.WorkerConfig, register func(*backstage.Worker)) (stop func() error, err error) {
	config.Logger = slog.New(slog.DiscardHandler)
	worker, err := backstage.NewWorker(p, config)
	if err != nil {
		return nil, err
	}
	register(worker)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-ended
	}), nil
}

// Settled waits until no job waits or is in flight.
func Settled(ctx context.Context, p *provider.Provider) error {
	for {
		stats, err := p.Stats.Queue(ctx, Queue)
		if err != nil {
			return err
		}
		waiting, _ := stats.Depth.Get()
		running, _ := stats.InFlight.Get()
		if waiting+running == 0 {
			return nil
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// Backlog stores jobs, a thousand an enqueue: plain ones, and, evenly among the
// first of them, jobs of the one account.
func Backlog(ctx context.Context, client *backstage.Client, plain, keyed int) error {
	const size = 1000
	batch := make([]backstage.Job, 0, size)
	add := func(job backstage.Job, last bool) error {
		batch = append(batch, job)
		if len(batch) < size && !last {
			return nil
		}
		_, err := client.Enqueue(ctx, batch...)
		batch = batch[:0]
		return err
	}
	for i := range plain + keyed {
		job := plainOrKeyed(i, plain, keyed)
		if err := add(job, i == plain+keyed-1); err != nil {
			return err
		}
	}
	return nil
}

func plainOrKeyed(i, plain, keyed int) backstage.Job {
	if both := 2 * min(plain, keyed); i < both && i%2 == 1 || i >= both && keyed > plain {
		return worktasks.KeyedJob(Keyed(i))
	}
	return worktasks.PlainJob(Request(i))
}
