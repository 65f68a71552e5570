package redisstreams

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/backstage-go/backstage/internal/brokers"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// patient is how long a test waits for what must happen, on a busy machine.
const patient = time.Minute

// resumes is within what time consumption goes on after a fault: ten seconds, and as
// much for a busy machine.
const resumes = 20 * time.Second

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	untilIn(t, patient, what, holds)
}

func untilIn(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(limit)
	for {
		if holds() {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("not within %v: %s", limit, what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// openStore opens a namespace of the test's own.
func openStore(t *testing.T, cfg Config) *store {
	t.Helper()
	return openHooked(t, cfg, internals{})
}

func openHooked(t *testing.T, cfg Config, in internals) *store {
	t.Helper()
	if cfg.Namespace == "" {
		cfg.Namespace = rand.Text()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	s, err := open(ctx, cfg, in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patient)
		defer cancel()
		if err := s.close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// shared opens a namespace of the test's own on the server that all tests share.
func shared(t *testing.T, cfg Config) *store {
	t.Helper()
	cfg.URL = "redis://" + brokers.SharedRedis(t)
	return openStore(t, cfg)
}

// durable is a server that has on its disk what it has confirmed.
func durable() brokers.RedisOptions {
	return brokers.RedisOptions{Args: []string{"--appendfsync", "always"}}
}

// admin is a client beside the provider, as an operator has one.
func admin(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (s *store) admin(t *testing.T) *redis.Client {
	t.Helper()
	opts := s.link.source.root.(*redis.Client).Options()
	return admin(t, opts.Addr)
}

// job makes a job.
func job(id string, with ...func(*provider.Job)) provider.Job {
	now := time.Unix(0, time.Now().UnixNano())
	j := provider.Job{ID: id, Task: "Task", Queue: "q", Payload: []byte("payload of " + id), Enqueued: now, FirstDue: now}
	for _, f := range with {
		f(&j)
	}
	return j
}

func jobs(n int, prefix string, with ...func(*provider.Job)) []provider.Job {
	list := make([]provider.Job, n)
	for i := range list {
		list[i] = job(fmt.Sprintf("%s%d", prefix, i), with...)
	}
	return list
}

func onQueue(queue string) func(*provider.Job) { return func(j *provider.Job) { j.Queue = queue } }
func in(d time.Duration) func(*provider.Job)   { return func(j *provider.Job) { j.Delay = d } }
func keyed(key string) func(*provider.Job)     { return func(j *provider.Job) { j.OrderingKey = key } }
func untilDone(key string) func(*provider.Job) {
	return func(j *provider.Job) { j.Dedupe = provider.Dedupe{Key: key, UntilDone: true} }
}
func failure(class, message string) provider.Failure {
	return provider.Failure{Class: class, Message: message, Attempt: 1}
}

// store publishes jobs that must be stored.
func (s *store) stores(t *testing.T, list ...provider.Job) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	for _, r := range s.Publish(ctx, list, provider.PublishOptions{}) {
		if r.Outcome != provider.OutcomeStored {
			t.Fatalf("publish %s: %s, %v", r.ID, r.Outcome, r.Err)
		}
	}
}

// worker subscribes to queues.
func (s *store) worker(t *testing.T, lease time.Duration, queues ...string) *subscription {
	t.Helper()
	opts := provider.SubscribeOptions{Worker: rand.Text(), Lease: lease, MaxUnsettled: 1000}
	for _, queue := range queues {
		opts.Lanes = append(opts.Lanes, provider.Lane{Queue: queue, Slots: 1})
	}
	sub, err := s.Subscribe(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Close(context.WithoutCancel(t.Context())) })
	return sub.(*subscription)
}

// takes receives exactly n deliveries.
func (s *subscription) takes(t *testing.T, n int) []provider.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	var got []provider.Delivery
	for len(got) < n {
		ds, err := s.Receive(ctx, s.queues(), n-len(got))
		got = append(got, ds...)
		if err != nil && len(got) < n {
			t.Fatalf("%d of %d deliveries: %v", len(got), n, err)
		}
	}
	return got
}

// gets returns what comes within a time.
func (s *subscription) gets(t *testing.T, within time.Duration, most int) []provider.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var got []provider.Delivery
	for ctx.Err() == nil && len(got) < most {
		ds, _ := s.Receive(ctx, s.queues(), most-len(got))
		got = append(got, ds...)
	}
	return got
}

func ack(t *testing.T, list ...provider.Delivery) {
	t.Helper()
	for _, d := range list {
		if err := d.Ack(t.Context(), nil); err != nil {
			t.Fatalf("ack %s: %v", d.Job().ID, err)
		}
	}
}

// seen keeps the events of a provider.
type seen struct {
	mu     sync.Mutex
	events []provider.Event
}

func (s *store) observe(t *testing.T) *seen {
	t.Helper()
	e := new(seen)
	t.Cleanup(s.provider.Events.Observe(func(event provider.Event) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.events = append(e.events, event)
	}))
	return e
}

func (e *seen) has(kind provider.Kind) bool { return e.count(kind) > 0 }

func (e *seen) count(kind provider.Kind) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := int64(0)
	for _, event := range e.events {
		if event.Kind == kind {
			n += max(1, event.Count)
		}
	}
	return n
}

// theatre is a client and a worker of the runtime, and what their jobs went through.
type theatre struct {
	t      *testing.T
	store  *store
	client *backstage.Client
	worker *backstage.Worker
	seen   *seen
	work   func(ctx context.Context, id string) error // what a handler does; nil: nothing
	queues []backstage.Queue                          // what the worker serves

	mu      sync.Mutex
	runs    map[string]int
	settled map[string]bool
	copies  map[string]int // how many copies of a job may be on record
	undone  []string       // jobs that ran after they were settled
	crashed []string       // jobs that ran with crashes
}

func stage(t *testing.T, s *store) *theatre {
	t.Helper()
	client, err := backstage.NewClient(s.provider, backstage.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return &theatre{t: t, store: s, client: client, seen: s.observe(t), queues: []backstage.Queue{{Name: "q"}, {Name: "other"}},
		runs: make(map[string]int), settled: make(map[string]bool), copies: make(map[string]int)}
}

// task is what all jobs are.
func task() backstage.Task[*wrapperspb.StringValue] {
	return backstage.Task[*wrapperspb.StringValue]{Name: "Task", Queue: "q"}
}

// starts starts a worker that runs until the test ends.
func (th *theatre) starts(cfg backstage.WorkerConfig) {
	th.t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Observer = th.observe
	cfg.Queues = th.queues
	w, err := backstage.NewWorker(th.store.provider, cfg)
	if err != nil {
		th.t.Fatal(err)
	}
	th.worker = w
	registration := backstage.Registration{Name: "Task", Queue: "q",
		Policy: backstage.Policy{MaxAttempts: 10, Backoff: backstage.Backoff{Base: 10 * time.Millisecond, Cap: 10 * time.Millisecond}}}
	backstage.Register(w, registration, func(ctx context.Context, _ *wrapperspb.StringValue) error {
		info, _ := backstage.InfoFrom(ctx)
		th.begins(info)
		if th.work == nil {
			return nil
		}
		return th.work(ctx, info.ID)
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(th.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	th.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			th.t.Errorf("the worker: %v", err)
		}
	})
	until(th.t, "the worker runs", func() bool { return w.Health(th.t.Context()) == nil })
}

func (th *theatre) begins(info backstage.Info) {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.runs[info.ID]++
	if th.settled[info.ID] && th.runs[info.ID] > th.copies[info.ID] {
		th.undone = append(th.undone, info.ID)
	}
	if info.Crashes > 0 {
		th.crashed = append(th.crashed, info.ID)
	}
}

func (th *theatre) observe(e backstage.Event) {
	if e, ok := e.(backstage.JobSettled); ok && (e.Settlement == backstage.Acked || e.Settlement == backstage.DeadLettered) {
		th.mu.Lock()
		defer th.mu.Unlock()
		th.settled[e.Job.ID] = true
	}
}

// enqueue enqueues jobs until each is stored, and returns their ids. One that is not
// known to be stored is enqueued again under its id.
func (th *theatre) enqueue(n int) []string {
	th.t.Helper()
	ids := make([]string, n)
	var wg sync.WaitGroup
	for i := range ids {
		ids[i] = newID()
		wg.Go(func() { th.insist(ids[i]) })
		if i%50 == 49 {
			wg.Wait()
		}
	}
	wg.Wait()
	return ids
}

func newID() string { return rand.Text() }

func (th *theatre) insist(id string) {
	deadline := time.Now().Add(patient)
	for {
		ctx, cancel := context.WithTimeout(th.t.Context(), 5*time.Second)
		th.copy(id, 1)
		receipt, err := backstage.Enqueue(ctx, th.client, backstage.NewJob(task(), wrapperspb.String(id), backstage.WithID(id)))
		cancel()
		if err == nil {
			return
		}
		if receipt.Outcome == backstage.Refused {
			th.copy(id, -1)
		}
		if time.Now().After(deadline) {
			th.t.Errorf("enqueue %s: %v", id, err)
			return
		}
		sleep(th.t.Context(), 20*time.Millisecond)
	}
}

func (th *theatre) copy(id string, n int) {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.copies[id] += n
}

// done reports whether all jobs are settled.
func (th *theatre) done(ids []string) bool {
	th.mu.Lock()
	defer th.mu.Unlock()
	return !slices.ContainsFunc(ids, func(id string) bool { return !th.settled[id] })
}

// resume checks that jobs that are enqueued from now on run soon, that the provider is
// well again, and that nothing that was finished has run again.
func (th *theatre) resume() {
	th.t.Helper()
	th.resumes()
	th.nothingTwice()
}

func (th *theatre) resumes() {
	th.t.Helper()
	began := time.Now()
	id := rand.Text()
	th.insist(id)
	untilIn(th.t, resumes, "a job that is enqueued after the fault runs", func() bool { return th.ran(id) > 0 })
	th.t.Logf("consumption resumed after %v", time.Since(began).Round(time.Millisecond))
	until(th.t, "health is good again", func() bool { return th.store.health(th.t.Context()) == nil })
}

func (th *theatre) ran(id string) int {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.runs[id]
}

func (th *theatre) nothingTwice() {
	th.t.Helper()
	th.mu.Lock()
	defer th.mu.Unlock()
	if len(th.undone) > 0 {
		th.t.Errorf("%d jobs ran after they had been settled: %.3q", len(th.undone), th.undone)
	}
}

// once checks that each job ran once, or as often as it may be on record because an
// enqueue was not answered.
func (th *theatre) once(ids []string) {
	th.t.Helper()
	th.mu.Lock()
	defer th.mu.Unlock()
	for _, id := range ids {
		if n := th.runs[id]; n < 1 || n > th.copies[id] {
			th.t.Errorf("%s ran %d times, with at most %d copies on record", id, n, th.copies[id])
		}
	}
}

// spotless checks that no run was counted as a crash: nobody died.
func (th *theatre) spotless() {
	th.t.Helper()
	th.mu.Lock()
	defer th.mu.Unlock()
	if len(th.crashed) > 0 {
		th.t.Errorf("%d jobs count crashes, and nobody died: %.3q", len(th.crashed), th.crashed)
	}
}

// sick waits until health says that something is wrong.
func (th *theatre) sick(why string) {
	th.t.Helper()
	until(th.t, "health is bad: "+why, func() bool {
		ctx, cancel := context.WithTimeout(th.t.Context(), 5*time.Second)
		defer cancel()
		return th.store.health(ctx) != nil
	})
}

// promotes moves what is due until the test ends.
func promotes(t *testing.T, held provider.Delays, publish provider.Publish) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- held.Promote(ctx, publish) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("promote: %v", err)
		}
	})
}

// empty checks that nothing is left of a queue.
func empty(t *testing.T, s *store, queue string) {
	t.Helper()
	stats, err := s.provider.Stats.Queue(t.Context(), queue)
	none := provider.Measured[int64](0)
	if err != nil || stats.Depth != none || stats.InFlight != none || stats.Held != none || stats.Dead != none {
		t.Errorf("queue %s in the end: %+v, %v; want nothing", queue, stats, err)
	}
}
