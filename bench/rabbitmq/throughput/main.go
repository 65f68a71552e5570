// Command throughput measures the RabbitMQ provider, through client and worker, beside
// a loop over amqp091-go that is written by hand (package bare), on one RabbitMQ of its
// own. Both use a quorum queue, persistent messages, the same prefetch, and
// acknowledgements that are sent together.
//
//	go run ./rabbitmq/throughput
//	go run ./rabbitmq/throughput -modes end-to-end -rounds 3
//	go run ./rabbitmq/throughput -modes end-to-end -sides backstage -cpuprofile cpu.prof
//
// The modes are
//
//   - end-to-end: many producers that each wait for their receipt, and a worker with
//     many slots, at once;
//   - enqueue: many producers that each wait for their receipt, and no worker;
//   - single: one producer that enqueues one job after the other, and no worker;
//   - batch: one producer that enqueues many jobs a call, of which 1,000 are on their
//     way at a time, and no worker.
//
// Handlers unmarshal their payload and count; the queue is emptied between runs.
// Processor time is that of this process, in which producers and the worker are, not
// RabbitMQ's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/backstage-go/backstage/bench/internal/contest"
	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/server"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/side"
)

func main() {
	c := contest.Contest{Rounds: 10, Jobs: 50_000, Producers: 64, Slots: 100, Batch: 10_000, Out: os.Stdout}
	c.Flags(flag.CommandLine)
	modes := flag.String("modes", contest.Modes(), "what is measured")
	sides := flag.String("sides", strings.Join([]string{side.Backstage, side.Bare}, ","), "who is measured")
	profile := flag.String("cpuprofile", "", "write a processor profile to this file")
	heap := flag.Int("heap", 0, "MiB that the process holds beside, as a program does")
	flag.Parse()
	defer measure.Hold(*heap)()

	if err := run(c, *modes, *sides, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "throughput:", err)
		os.Exit(1)
	}
}

func run(c contest.Contest, modes, sides, profile string) (err error) {
	ctx := context.Background()
	s, err := server.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c.Sides = side.All(s)
	if err := c.Keep(sides); err != nil {
		return err
	}
	about, err := s.Describe()
	if err != nil {
		return err
	}
	stop, err := measure.Profile(profile)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintln(c.Out, about)
	_, err = c.Run(ctx, modes)
	return err
}
