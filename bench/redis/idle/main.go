// Command idle measures what a worker of the Redis provider that has nothing to do
// asks of Redis: commands a second, by the number of its lanes.
//
//	go run ./redis/idle
//	go run ./redis/idle -lanes 1,100 -for 1m
//
// A worker on queues without jobs is left alone for a while, its first moments, in
// which it makes streams and loads scripts, not counted. The commands that it sends
// are counted as they leave for the network, and those that Redis executed, which
// include the ones inside scripts, by Redis. All lanes are in one hash slot.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/backstage-go/backstage/runtime"

	benchv1 "github.com/backstage-go/backstage/bench/gen/bench/v1"
	"github.com/backstage-go/backstage/bench/redis/internal/server"
	"github.com/backstage-go/backstage/bench/redis/internal/side"
)

// plan is what is measured.
type plan struct {
	lanes     []int
	slots     int
	span, pre time.Duration
	server    *server.Server
	out       io.Writer
}

func main() {
	p := plan{out: os.Stdout}
	lanes := flag.String("lanes", "1,10,50", "numbers of lanes")
	flag.IntVar(&p.slots, "slots", 100, "jobs that could run at once")
	flag.DurationVar(&p.span, "for", 20*time.Second, "how long is counted")
	flag.DurationVar(&p.pre, "after", 3*time.Second, "how long is not counted before")
	flag.Parse()

	if err := p.main(*lanes); err != nil {
		fmt.Fprintln(os.Stderr, "idle:", err)
		os.Exit(1)
	}
}

func (p plan) main(lanes string) error {
	for text := range strings.SplitSeq(lanes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-lanes %s: use numbers from 1", lanes)
		}
		p.lanes = append(p.lanes, n)
	}
	return server.With(func(ctx context.Context, s *server.Server) error {
		p.server = s
		_, err := p.run(ctx)
		return err
	})
}

// run returns the commands sent a second for each number of lanes.
func (p plan) run(ctx context.Context) ([]float64, error) {
	about, err := p.server.Describe(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(p.out, "%s\nan idle worker, %v after its first %v\n", about, p.span, p.pre)
	var rates []float64
	for _, lanes := range p.lanes {
		sent, executed, err := p.idle(ctx, lanes)
		if err != nil {
			return nil, fmt.Errorf("%d lanes: %w", lanes, err)
		}
		seconds := p.span.Seconds()
		rate := float64(sent.Total()) / seconds
		fmt.Fprintf(p.out, "%2d lanes: %.2f commands sent a second (%s); %.2f executed (%s)\n", lanes,
			rate, sent.Per(seconds), float64(executed.Total())/seconds, executed.Per(seconds))
		rates = append(rates, rate)
	}
	return rates, nil
}

// idle runs a worker on an empty server.
func (p plan) idle(ctx context.Context, lanes int) (sent, executed server.Calls, err error) {
	if err := p.server.Clear(ctx); err != nil {
		return nil, nil, err
	}
	var counted server.Sent
	options := p.server.Options()
	counted.Count(options)
	store, err := side.Open(ctx, options)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, store.Close(ctx)) }()
	queues := make([]string, lanes-1) // beside the task's own
	for i := range queues {
		queues[i] = fmt.Sprint("other-", i)
	}
	stop, err := side.StartPlain(store, backstage.WorkerConfig{Concurrency: p.slots},
		func(context.Context, *benchv1.PlainRequest) error { return nil }, queues...)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	time.Sleep(p.pre)
	if err := p.server.Client().ConfigResetStat(ctx).Err(); err != nil {
		return nil, nil, err
	}
	counted.Take()
	time.Sleep(p.span)
	sent = counted.Take()
	if executed, err = p.server.Executed(ctx); err != nil {
		return nil, nil, err
	}
	delete(executed, "config|resetstat") // ours
	return sent, executed, nil
}
