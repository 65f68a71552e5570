// Command throughput measures the Redis provider, through client and worker, beside
// asynq and beside a loop over Redis Streams that is written by hand (package bare),
// on one Redis of its own: appendonly, fsync every second.
//
//	go run ./redis/throughput
//	go run ./redis/throughput -modes end-to-end,drain -rounds 3
//	go run ./redis/throughput -modes end-to-end -sides backstage -cpuprofile cpu.prof
//
// The modes are
//
//   - end-to-end: many producers that each wait for their receipt, and a worker with
//     many slots, at once;
//   - drain: a backlog is worked off, and nothing is enqueued meanwhile;
//   - enqueue: many producers that each wait for their receipt, and no worker;
//   - single: one producer that enqueues one job after the other, and no worker.
//
// Handlers unmarshal their payload and count. In every round the sides take turns,
// and who begins a round takes turns too; everything is deleted between runs. What
// counts is the ratio of rates within a round, and the median over the rounds.
//
// Jobs lost are those that no handler saw; jobs run twice are counted by their
// numbers. Processor time is that of this process, in which producers and the worker
// are, and that of Redis. The commands that a side sends are counted in a run of
// their own, because counting costs; those that Redis executed, which include the
// ones inside scripts, in the last round.
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
	"time"

	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/redis/internal/server"
	"github.com/backstage-go/backstage/bench/redis/internal/side"
)

// plan is what is measured.
type plan struct {
	rounds, jobs, producers, slots int
	sides                          []string
	asynq                          side.AsynqConfig
	server                         *server.Server
	out                            io.Writer
}

func main() {
	p := plan{out: os.Stdout}
	flag.IntVar(&p.rounds, "rounds", 5, "rounds")
	flag.IntVar(&p.jobs, "jobs", 100_000, "jobs a run")
	flag.IntVar(&p.producers, "producers", 64, "producers, each waiting for its receipt")
	flag.IntVar(&p.slots, "slots", 100, "jobs that run at once")
	flag.DurationVar(&p.asynq.Check, "asynq-check", 10*time.Millisecond, "how long asynq sleeps when it finds no job; its default is a second")
	names := flag.String("modes", strings.Join(modeNames(), ","), "what is measured")
	sides := flag.String("sides", strings.Join([]string{side.Bare, side.Backstage, side.Asynq}, ","), "who is measured")
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

func (p plan) main(names, profile string) error {
	chosen, err := modesOf(names)
	if err != nil {
		return err
	}
	stop, err := measure.Profile(profile)
	if err != nil {
		return err
	}
	defer stop()
	return server.With(func(ctx context.Context, s *server.Server) error {
		p.server = s
		_, err := p.run(ctx, chosen)
		return err
	})
}

// run measures the chosen modes, and returns their rounds.
func (p plan) run(ctx context.Context, chosen []mode) (map[string][]round, error) {
	about, err := p.server.Describe(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(p.out, "%s\n", about)
	all := make(map[string][]round)
	for _, m := range chosen {
		if all[m.name], err = p.mode(ctx, m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return all, nil
}

func (p plan) mode(ctx context.Context, m mode) ([]round, error) {
	fmt.Fprintf(p.out, "\n%s: %s\n", m.name, m.about(p))
	var rounds []round
	for i := range p.rounds {
		r := make(round)
		for k := range p.sides {
			name := p.sides[(i+k)%len(p.sides)]
			one, err := p.measure(ctx, m, name, nil)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			r[name] = one
		}
		fmt.Fprintf(p.out, "round %d: %s\n", i+1, r.print(p.sides))
		rounds = append(rounds, r)
	}
	p.summary(rounds)
	return rounds, p.commands(ctx, m, rounds[len(rounds)-1])
}

// summary prints the medians, and what went wrong in all rounds together.
func (p plan) summary(rounds []round) {
	fmt.Fprintf(p.out, "median:  %s\n", medians(rounds, p.sides))
	for _, name := range p.sides {
		var lost, twice int
		for _, r := range rounds {
			lost += r[name].lost
			twice += r[name].twice
		}
		fmt.Fprintf(p.out, "%s: %d jobs lost, %d run twice\n", name, lost, twice)
	}
}

// commands prints what each side sends and what Redis executes for it.
func (p plan) commands(ctx context.Context, m mode, last round) error {
	for _, name := range p.sides {
		var sent server.Sent
		counted, err := p.measure(ctx, m, name, &sent)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		calls, jobs := counted.sent, float64(counted.Jobs)
		fmt.Fprintf(p.out, "%s: %.2f commands sent a job (%s); %.2f executed (%s)\n", name,
			float64(calls.Total())/jobs, calls.Per(jobs),
			float64(last[name].executed.Total())/jobs, last[name].executed.Per(jobs))
	}
	return nil
}

// measure takes one run of one side on an empty server. With sent, commands are
// counted, too.
func (p plan) measure(ctx context.Context, m mode, name string, sent *server.Sent) (f figures, err error) {
	if err := p.server.Clear(ctx); err != nil {
		return f, err
	}
	s, err := p.open(ctx, name, sent)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	jobs := m.jobs(p)
	r := &run{plan: p, side: s, jobs: jobs, tally: side.NewTally(jobs), sent: sent}
	if err := m.run(ctx, r); err != nil {
		return f, err
	}
	if m.works {
		r.figures.lost, r.figures.twice = r.tally.Lost(), r.tally.Twice()
	}
	return r.figures, nil
}

func (p plan) open(ctx context.Context, name string, sent *server.Sent) (side.Side, error) {
	options := p.server.Options()
	if sent != nil {
		sent.Count(options)
	}
	switch name {
	case side.Backstage:
		return side.NewBackstage(ctx, options)
	case side.Asynq:
		return side.NewAsynq(options, p.asynq), nil
	case side.Bare:
		return side.NewBare(ctx, options)
	}
	return nil, fmt.Errorf("-sides %s: use %s, %s, %s", name, side.Bare, side.Backstage, side.Asynq)
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
