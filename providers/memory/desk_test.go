package memory_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime/provider"
)

// desk is a store with verbs that fail the test.
type desk struct {
	*testing.T
	store *memory.Store
	p     *provider.Provider
	ids   atomic.Int64
	names atomic.Int64
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{T: t, store: memory.NewStore()}
	d.p = d.open(memory.Config{})
	return d
}

// open opens the store once more, as another process.
func (d *desk) open(config memory.Config) *provider.Provider {
	d.Helper()
	config.Store = d.store
	p, err := memory.Open(config)
	if err != nil {
		d.Fatalf("open: %v", err)
	}
	d.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

func (d *desk) job(queue string, with ...func(*provider.Job)) provider.Job {
	j := provider.Job{ID: fmt.Sprintf("job-%d", d.ids.Add(1)), Task: "t.v1.Tasks.Do", Queue: queue, Payload: []byte("p")}
	for _, f := range with {
		f(&j)
	}
	return j
}

func keyed(key string) func(*provider.Job) {
	return func(j *provider.Job) { j.OrderingKey = key }
}

func after(delay time.Duration) func(*provider.Job) {
	return func(j *provider.Job) { j.Delay = delay }
}

func untilDone(key string) func(*provider.Job) {
	return func(j *provider.Job) { j.Dedupe = provider.Dedupe{Key: key, UntilDone: true} }
}

func window(key string, length time.Duration) func(*provider.Job) {
	return func(j *provider.Job) { j.Dedupe = provider.Dedupe{Key: key, For: length} }
}

func (d *desk) try(j provider.Job) provider.Stored {
	d.Helper()
	return d.p.Jobs.Publish(d.Context(), []provider.Job{j}, provider.PublishOptions{})[0]
}

func (d *desk) publish(jobs ...provider.Job) {
	d.Helper()
	for _, s := range d.p.Jobs.Publish(d.Context(), jobs, provider.PublishOptions{}) {
		if s.Outcome != provider.OutcomeStored {
			d.Fatalf("publish %s: %v, %v", s.ID, s.Outcome, s.Err)
		}
	}
}

const lease = 10 * time.Second

// worker is a subscription with verbs that fail the test.
type worker struct {
	*desk
	provider.Subscription
	lanes []string
}

func (d *desk) worker(p *provider.Provider, lanes ...string) *worker {
	d.Helper()
	opts := provider.SubscribeOptions{Worker: fmt.Sprintf("w-%d", d.names.Add(1)), Lease: lease, MaxUnsettled: 1000}
	for _, lane := range lanes {
		opts.Lanes = append(opts.Lanes, provider.Lane{Queue: lane, Slots: 10})
	}
	sub, err := p.Jobs.Subscribe(d.Context(), opts)
	if err != nil {
		d.Fatalf("subscribe: %v", err)
	}
	return &worker{desk: d, Subscription: sub, lanes: lanes}
}

// receive takes n deliveries.
func (w *worker) receive(n int) []provider.Delivery {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Hour)
	defer cancel()
	var got []provider.Delivery
	for len(got) < n {
		more, err := w.Receive(ctx, w.lanes, n-len(got))
		if err != nil {
			w.Fatalf("receive: %v; have %d of %d", err, len(got), n)
		}
		got = append(got, more...)
	}
	return got
}

func (w *worker) one(id string) provider.Delivery {
	w.Helper()
	got := w.receive(1)[0]
	if id != "" && got.Job().ID != id {
		w.Fatalf("received %s; want %s", got.Job().ID, id)
	}
	return got
}

// nothing checks that nothing comes for a while.
func (w *worker) nothing(d time.Duration) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), d)
	defer cancel()
	got, err := w.Receive(ctx, w.lanes, 1)
	if len(got) > 0 {
		w.Fatalf("received %s; want nothing (%v)", got[0].Job().ID, err)
	}
}

func (d *desk) ack(delivery provider.Delivery, next ...provider.Job) {
	d.Helper()
	if err := delivery.Ack(d.Context(), next); err != nil {
		d.Fatalf("ack %s: %v", delivery.Job().ID, err)
	}
}

func (d *desk) numbers(queue string) provider.QueueStats {
	d.Helper()
	numbers, err := d.p.Stats.Queue(d.Context(), queue)
	if err != nil {
		d.Fatalf("stats: %v", err)
	}
	return numbers
}

func (d *desk) letters() []provider.DeadLetter {
	d.Helper()
	letters, _, err := d.p.Dead.List(d.Context(), provider.DeadFilter{}, "")
	if err != nil {
		d.Fatalf("list: %v", err)
	}
	return letters
}

func is[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v; want %v", what, got, want)
	}
}

func known[T any](t *testing.T, m provider.Measure[T]) T {
	t.Helper()
	v, ok := m.Get()
	if !ok {
		t.Error("a measure is unknown")
	}
	return v
}

// another opens the store as another process, with nothing configured.
func (d *desk) another() *provider.Provider {
	d.Helper()
	return d.open(memory.Config{})
}
