// Command pickup measures how soon jobs start on the Kafka provider that are enqueued
// while the worker has nothing else to do: one by one at a steady pace, from the call
// that enqueues a job to the start of its handler, beside two loops that are written by
// hand, on one Kafka of its own.
//
//	go run ./kafka/pickup
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/backstage-go/backstage/bench/internal/contest"
	"github.com/backstage-go/backstage/bench/internal/load"
	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/kafka/internal/server"
	"github.com/backstage-go/backstage/bench/kafka/internal/side"
)

// plan is what is measured.
type plan struct {
	rate, jobs, slots int
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
	s, err := server.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return p.run(ctx, s)
}

func (p plan) run(ctx context.Context, s *server.Server) error {
	fmt.Fprintf(p.out, "%s\n%d jobs, %d a second, from the call that enqueues to the start of the handler:\n", s.Describe(), p.jobs, p.rate)
	for _, one := range side.All(s) {
		waits, err := p.pace(ctx, one)
		if err != nil {
			return fmt.Errorf("%s: %w", one.Name, err)
		}
		fmt.Fprintf(p.out, "%s: %s\n", one.Name, waits)
	}
	return nil
}

// pace measures one side.
func (p plan) pace(ctx context.Context, one contest.Side) (waits measure.Durations, err error) {
	s, err := one.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return load.Pace(ctx, s, p.slots, p.jobs, p.rate)
}
