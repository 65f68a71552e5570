package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/providers/rabbitmq"
	"github.com/backstage-go/backstage/runtime"

	"github.com/backstage-go/backstage/bench/internal/work"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/side"
)

// fault is what happens to a worker.
type fault struct {
	name   string
	strike func(*worker, *brokers.Proxy) error
}

func faults() []fault {
	return []fault{
		{"kill", func(w *worker, _ *brokers.Proxy) error { return w.process().Kill() }},
		{"stop", func(w *worker, _ *brokers.Proxy) error { return freeze(w.process()) }},
		{"blackhole", func(_ *worker, p *brokers.Proxy) error { p.Blackhole(); return nil }},
	}
}

func faultNames() []string {
	var names []string
	for _, f := range faults() {
		names = append(names, f.name)
	}
	return names
}

// patience is how long the parts of a trial may take before it fails.
const patience = time.Minute

// errTooBusy is a trial that says nothing: the machine kept the first worker from its
// heartbeats for a whole lease before anything happened to it.
var errTooBusy = errors.New("a job of a worker that is well ran elsewhere: the machine is too busy for the lease")

// trial lets one fault happen once, on an empty queue, and returns how long it was
// until all jobs ran again.
func (p plan) trial(ctx context.Context, f fault) (took time.Duration, err error) {
	if err := p.server.Empty(ctx, side.JobsQueue); err != nil {
		return 0, err
	}
	proxy, err := brokers.NewProxy(p.server.Addr())
	if err != nil {
		return 0, err
	}
	defer proxy.Close()
	first, err := p.hire(proxy.Addr())
	if err != nil {
		return 0, err
	}
	defer first.dismiss()
	if err := p.enqueue(ctx); err != nil {
		return 0, err
	}
	if _, err := first.starts(p.jobs, patience); err != nil {
		return 0, fmt.Errorf("the first worker: %w", err)
	}
	second, err := p.hire(p.server.Addr())
	if err != nil {
		return 0, err
	}
	defer second.dismiss()
	if n, _ := second.starts(1, p.lease+rand.N(p.lease)); n > 0 { // over some heartbeats
		return 0, errTooBusy
	}
	began := time.Now()
	if err := f.strike(first, proxy); err != nil {
		return 0, err
	}
	if n, err := second.starts(p.jobs, p.lease+slack+patience); err != nil {
		return 0, fmt.Errorf("the second worker ran %d of %d jobs: %w", n, p.jobs, err)
	}
	return time.Since(began), nil
}

func (p plan) enqueue(ctx context.Context) (err error) {
	store, err := rabbitmq.Open(ctx, rabbitmq.Config{URL: p.server.URL()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(ctx)) }()
	client, err := backstage.NewClient(store, backstage.ClientConfig{})
	if err != nil {
		return err
	}
	return work.Backlog(ctx, client, p.jobs, 0)
}
