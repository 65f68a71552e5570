// Command pickup measures how soon jobs start on the Redis provider: those that are
// enqueued while the worker has nothing else to do, and retries whose time has come,
// with a Redis of its own: appendonly, fsync every second.
//
//	go run ./redis/pickup
//
// It takes, one after the other,
//
//   - pace: jobs that are enqueued one by one at a steady pace, from the call that
//     enqueues a job to the start of its handler; and the same with asynq, which asks
//     for jobs at intervals when it has found none, at its default of a second and at
//     ten milliseconds;
//   - retries on an idle worker: jobs that fail once and ask for their next run after
//     a while, one at a time, from the time they asked for to the start of that run;
//   - retries under load: the same, many at once, beside producers that each enqueue
//     as fast as they get their receipts.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/backstage-go/backstage/bench/redis/internal/server"
	"github.com/backstage-go/backstage/bench/redis/internal/side"
)

// plan is what is measured.
type plan struct {
	rate, jobs, slots, producers int
	idle, loaded                 int // retries
	server                       *server.Server
	out                          io.Writer
}

func main() {
	p := plan{out: os.Stdout}
	flag.IntVar(&p.rate, "rate", 50, "jobs a second at the steady pace")
	flag.IntVar(&p.jobs, "jobs", 1000, "jobs at the steady pace")
	flag.IntVar(&p.slots, "slots", 100, "jobs that run at once")
	flag.IntVar(&p.producers, "producers", 64, "producers of the load, each waiting for its receipt")
	flag.IntVar(&p.idle, "idle", 30, "retries on an idle worker")
	flag.IntVar(&p.loaded, "loaded", 300, "retries under load")
	flag.Parse()

	if err := p.main(); err != nil {
		fmt.Fprintln(os.Stderr, "pickup:", err)
		os.Exit(1)
	}
}

func (p plan) main() error {
	return server.With(func(ctx context.Context, s *server.Server) error {
		p.server = s
		return p.run(ctx)
	})
}

func (p plan) run(ctx context.Context) error {
	about, err := p.server.Describe(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s\n", about)
	fmt.Fprintf(p.out, "%d jobs, %d a second, from the call that enqueues to the start of the handler:\n", p.jobs, p.rate)
	for _, one := range []struct {
		name string
		open func() (side.Side, error)
	}{
		{"backstage", func() (side.Side, error) { return side.NewBackstage(ctx, p.server.Options()) }},
		{"asynq, asking every second", func() (side.Side, error) {
			return side.NewAsynq(p.server.Options(), side.AsynqConfig{}), nil
		}},
		{"asynq, asking every 10 ms", func() (side.Side, error) {
			return side.NewAsynq(p.server.Options(), side.AsynqConfig{Check: 10 * time.Millisecond}), nil
		}},
	} {
		if err := p.pace(ctx, one.name, one.open); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	fmt.Fprintln(p.out, "retries, from the time that was asked for to the start of the run:")
	if err := p.retries(ctx, "idle worker", p.idleRetries); err != nil {
		return err
	}
	return p.retries(ctx, fmt.Sprintf("under the load of %d producers", p.producers), p.loadedRetries)
}
