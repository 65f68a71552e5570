// Command throughput measures the Kafka provider, through client and worker, beside two
// loops that are written by hand (package bare): a Writer and a Reader of the client that
// the provider uses, segmentio/kafka-go, with a batch timeout of a millisecond, and the
// client twmb/franz-go. All are on one Kafka of its own, with as many partitions, acks of
// all replicas and one group.
//
//	go run ./kafka/throughput
//	go run ./kafka/throughput -modes end-to-end -rounds 3
//	go run ./kafka/throughput -modes end-to-end -sides backstage -cpuprofile cpu.prof
//
// The modes are
//
//   - end-to-end: many producers that each wait for their receipt, and a worker with
//     many slots, at once;
//   - enqueue: many producers that each wait for their receipt, and no worker;
//   - single: one producer that enqueues one job after the other, and no worker;
//   - batch: one producer that enqueues many jobs a call, and no worker.
//
// Handlers unmarshal their payload and count. Each run has topics of its own. Processor
// time is that of this process, in which producers and the worker are, not Kafka's.
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
	"github.com/backstage-go/backstage/bench/kafka/internal/server"
	"github.com/backstage-go/backstage/bench/kafka/internal/side"
)

func main() {
	c := contest.Contest{Rounds: 5, Jobs: 50_000, Producers: 64, Slots: 100, Batch: 10_000, Out: os.Stdout}
	c.Flags(flag.CommandLine)
	modes := flag.String("modes", contest.Modes(), "what is measured")
	sides := flag.String("sides", strings.Join([]string{side.Backstage, side.Segmentio, side.Franz}, ","), "who is measured")
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
	stop, err := measure.Profile(profile)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintln(c.Out, s.Describe())
	_, err = c.Run(ctx, modes)
	return err
}
