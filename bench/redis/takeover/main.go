// Command takeover measures how long jobs of a worker that is gone wait until
// another worker runs them, on the Redis provider with a Redis of its own
// (appendonly, fsync every second).
//
//	go run ./redis/takeover
//	go run ./redis/takeover -faults kill -times 100
//
// Workers are processes. One takes some jobs, whose handlers do not return; another
// has free slots. Then, at a random moment between two heartbeats, the first
//
//   - is killed with SIGKILL (kill);
//   - is stopped with SIGSTOP, so that its connections stay open (stop);
//   - hears nothing more from Redis and reaches it no more, through a proxy that stops
//     forwarding and keeps the connections open (blackhole).
//
// What is measured is the time from there until all jobs run again. It should be at
// most the lease and five seconds.
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
)

// plan is what is measured.
type plan struct {
	times, jobs int
	lease       time.Duration
	server      *server.Server
	out         io.Writer
}

func main() {
	p := plan{out: os.Stdout}
	flag.IntVar(&p.times, "times", 20, "how often for each fault")
	flag.IntVar(&p.jobs, "jobs", 10, "jobs that run when it happens")
	flag.DurationVar(&p.lease, "lease", 2*time.Second, "the lease")
	names := flag.String("faults", strings.Join(faultNames(), ","), "what happens")
	worker := flag.String("worker", "", "run a worker on the Redis at this address: what the program starts itself with")
	flag.Parse()

	var err error
	if *worker != "" {
		err = serve(*worker, p.lease, p.jobs)
	} else {
		err = p.main(*names)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "takeover:", err)
		os.Exit(1)
	}
}

func (p plan) main(names string) error {
	var chosen []fault
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(faults(), func(f fault) bool { return f.name == name })
		if i < 0 {
			return fmt.Errorf("-faults %s: use %s", name, strings.Join(faultNames(), ", "))
		}
		chosen = append(chosen, faults()[i])
	}
	return server.With(func(ctx context.Context, s *server.Server) error {
		p.server = s
		return p.run(ctx, chosen)
	})
}

// slack is what a takeover may take beyond the lease.
const slack = 5 * time.Second

func (p plan) run(ctx context.Context, chosen []fault) error {
	about, err := p.server.Describe(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s\n%d jobs of one worker, lease %v: at most %v until all of them run again\n",
		about, p.jobs, p.lease, p.lease+slack)
	for _, f := range chosen {
		if err := p.repeat(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// repeat lets one fault happen again and again. Trials that say nothing are taken
// again, and counted.
func (p plan) repeat(ctx context.Context, f fault) error {
	var took measure.Durations
	void, late := 0, 0
	for len(took) < p.times {
		one, err := p.trial(ctx, f)
		if errors.Is(err, errTooBusy) && void < p.times {
			void++
			continue
		}
		if err != nil {
			return err
		}
		if one > p.lease+slack {
			late++
		}
		took = append(took, one)
	}
	fmt.Fprintf(p.out, "%s: %s; %d too late", f.name, took, late)
	if void > 0 {
		fmt.Fprintf(p.out, "; %d more void, because the machine was too busy for the lease", void)
	}
	fmt.Fprintln(p.out)
	return nil
}
