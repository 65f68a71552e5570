// Command throughput measures the RabbitMQ provider, through client and worker, beside
// a loop over amqp091-go that is written by hand (package bare), on one RabbitMQ of its
// own. Both use a quorum queue, persistent messages, the same prefetch, and
// acknowledgements that are sent together.
//
//	go run ./rabbitmq/throughput
//	go run ./rabbitmq/throughput -modes end-to-end -pairs 3
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
// Handlers unmarshal their payload and count. In every pair the sides take turns, and
// who begins takes turns too; the queue is emptied between runs. What counts is the
// ratio of rates within a pair, and the median over the pairs. Processor time is that
// of this process, in which producers and the worker are, not RabbitMQ's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/backstage-go/backstage/bench/internal/load"
	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/bare"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/server"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/side"
)

// plan is what is measured.
type plan struct {
	pairs, jobs, producers, slots, batch int
	sides                                []string
	server                               *server.Server
	out                                  io.Writer
}

func main() {
	p := plan{out: os.Stdout}
	flag.IntVar(&p.pairs, "pairs", 10, "pairs of runs")
	flag.IntVar(&p.jobs, "jobs", 50_000, "jobs a run")
	flag.IntVar(&p.producers, "producers", 64, "producers, each waiting for its receipt")
	flag.IntVar(&p.slots, "slots", 100, "jobs that run at once")
	flag.IntVar(&p.batch, "batch", 10_000, "jobs a call of mode batch")
	names := flag.String("modes", strings.Join(modeNames(), ","), "what is measured")
	sides := flag.String("sides", side.Backstage+","+side.Bare, "who is measured")
	profile := flag.String("cpuprofile", "", "write a processor profile to this file")
	heap := flag.Int("heap", 0, "MiB that the process holds beside, as a program does")
	flag.Parse()
	defer measure.Hold(*heap)()

	p.sides = strings.Split(*sides, ",")
	if err := p.main(*names, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "throughput:", err)
		os.Exit(1)
	}
}

func (p plan) main(names, profile string) (err error) {
	ctx := context.Background()
	chosen, err := modesOf(names)
	if err != nil {
		return err
	}
	if p.server, err = server.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.server.Close()) }()
	stop, err := measure.Profile(profile)
	if err != nil {
		return err
	}
	defer stop()
	_, err = p.run(ctx, chosen)
	return err
}

// run measures the chosen modes, and returns their pairs.
func (p plan) run(ctx context.Context, chosen []mode) (map[string][]pair, error) {
	about, err := p.server.Describe()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(p.out, "%s\n", about)
	all := make(map[string][]pair)
	for _, m := range chosen {
		if all[m.name], err = p.mode(ctx, m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return all, nil
}

func (p plan) mode(ctx context.Context, m mode) ([]pair, error) {
	fmt.Fprintf(p.out, "\n%s: %s\n", m.name, m.about(p))
	var pairs []pair
	for i := range p.pairs {
		one := make(pair)
		for k := range p.sides {
			name := p.sides[(i+k)%len(p.sides)]
			f, err := p.measure(ctx, m, name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			one[name] = f
		}
		fmt.Fprintf(p.out, "pair %d: %s\n", i+1, p.medians([]pair{one}))
		pairs = append(pairs, one)
	}
	p.summary(pairs)
	return pairs, nil
}

// warmup is how many jobs run before those that count: queues and channels are made by
// them.
const warmup = 500

// measure takes one run of one side on an empty queue.
func (p plan) measure(ctx context.Context, m mode, name string) (f figures, err error) {
	s, queue, err := p.open(ctx, name)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.Close(), p.server.Empty(ctx, queue)) }()
	if err := s.Batch(ctx, 0, warmup); err != nil {
		return f, err
	}
	if err := p.server.Empty(ctx, queue); err != nil {
		return f, err
	}
	return m.run(ctx, p, s)
}

// open opens a side, and names its queue in RabbitMQ.
func (p plan) open(ctx context.Context, name string) (s load.Side, queue string, err error) {
	switch name {
	case side.Backstage:
		s, err = side.NewBackstage(ctx, p.server.URL())
		return s, side.JobsQueue, err
	case side.Bare:
		s, err = side.NewBare(p.server.URL())
		return s, bare.Name, err
	}
	return nil, "", fmt.Errorf("-sides %s: use %s, %s", name, side.Backstage, side.Bare)
}

func modesOf(names string) ([]mode, error) {
	var chosen []mode
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(modes(), func(m mode) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-modes %s: use %s", name, strings.Join(modeNames(), ", "))
		}
		chosen = append(chosen, modes()[i])
	}
	return chosen, nil
}

func modeNames() []string {
	var names []string
	for _, m := range modes() {
		names = append(names, m.name)
	}
	return names
}
