// Command pickup measures how soon jobs start on the RabbitMQ provider that are enqueued
// while the worker has nothing else to do: one by one at a steady pace, from the call
// that enqueues a job to the start of its handler, beside a loop that is written by
// hand, on one RabbitMQ of its own.
//
//	go run ./rabbitmq/pickup
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/backstage-go/backstage/bench/internal/load"
	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/server"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/side"
)

// plan is what is measured.
type plan struct {
	rate, jobs, slots int
	server            *server.Server
	out               io.Writer
}

func main() {
	p := plan{out: os.Stdout}
	flag.IntVar(&p.rate, "rate", 50, "jobs a second")
	flag.IntVar(&p.jobs, "jobs", 1000, "jobs")
	flag.IntVar(&p.slots, "slots", 100, "jobs that run at once")
	flag.Parse()

	if err := p.main(); err != nil {
		fmt.Fprintln(os.Stderr, "pickup:", err)
		os.Exit(1)
	}
}

func (p plan) main() (err error) {
	ctx := context.Background()
	if p.server, err = server.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.server.Close()) }()
	return p.run(ctx)
}

func (p plan) run(ctx context.Context) error {
	about, err := p.server.Describe()
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s\n%d jobs, %d a second, from the call that enqueues to the start of the handler:\n", about, p.jobs, p.rate)
	for _, one := range []struct {
		name string
		open func() (load.Side, error)
	}{
		{side.Backstage, func() (load.Side, error) { return side.NewBackstage(ctx, p.server.URL()) }},
		{side.Bare, func() (load.Side, error) { return side.NewBare(p.server.URL()) }},
	} {
		waits, err := p.pace(ctx, one.open)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		fmt.Fprintf(p.out, "%s: %s\n", one.name, waits)
	}
	return nil
}

// pace measures one side.
func (p plan) pace(ctx context.Context, open func() (load.Side, error)) (waits measure.Durations, err error) {
	s, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return load.Pace(ctx, s, p.slots, p.jobs, p.rate)
}
