package backstage_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// text is the payload of the tasks of these tests.
type text = wrapperspb.StringValue

// rig is a store, a provider on it, a client, and a log of all that is observed.
// It lives in a synctest bubble: time passes only by sleep.
type rig struct {
	*testing.T
	store  *memory.Store
	p      *provider.Provider
	client *backstage.Client
	events *eventLog
	logs   *logBuffer
	hooks  *hooks
	last   *running // started last
}

// inBubble runs a test beside others, in a bubble of its own.
func inBubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(newRig(t, false)) })
}

// inBubbleSub is inBubble for a row of a table.
func inBubbleSub(t *testing.T, name string, test func(r *rig)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inBubble(t, test) })
}

// inRounds runs a test twice: with the provider's own Delays and Claims, and with
// those lent by a second store.
func inRounds(t *testing.T, test func(r *rig)) {
	t.Helper()
	t.Parallel()
	for _, lent := range []bool{false, true} {
		name := "own"
		if lent {
			name = "lent"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(newRig(t, lent)) })
		})
	}
}

func newRig(t *testing.T, lent bool) *rig {
	t.Helper()
	r := &rig{T: t, store: memory.NewStore(), events: &eventLog{began: time.Now()}, logs: &logBuffer{}, hooks: &hooks{}}
	r.p = r.open(r.store)
	if lent {
		r.p.Delays, r.p.Claims = r.open(memory.NewStore()).Lend("rig")
	}
	r.p.Jobs = &hookedJobs{r.p.Jobs, r.hooks}
	r.client = r.newClient(backstage.ClientConfig{})
	return r
}

// open opens a store as a process would.
func (r *rig) open(store *memory.Store) *provider.Provider {
	r.Helper()
	p, err := memory.Open(memory.Config{Store: store})
	if err != nil {
		r.Fatalf("open memory: %v", err)
	}
	r.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// other is the rig as another process on the same store sees it.
func (r *rig) other() *rig {
	r.Helper()
	o := *r
	o.hooks, o.last = &hooks{}, nil
	o.p = r.open(r.store)
	o.p.Jobs = &hookedJobs{o.p.Jobs, o.hooks}
	o.client = o.newClient(backstage.ClientConfig{})
	return &o
}

func (r *rig) newClient(cfg backstage.ClientConfig) *backstage.Client {
	r.Helper()
	if cfg.Observer == nil {
		cfg.Observer = r.events.add
	}
	client, err := backstage.NewClient(r.p, cfg)
	if err != nil {
		r.Fatalf("new client: %v", err)
	}
	return client
}

// task is a task without any option; with changes it.
func task(name string, with ...func(*backstage.Task[*text])) backstage.Task[*text] {
	t := backstage.Task[*text]{Name: name}
	for _, change := range with {
		change(&t)
	}
	return t
}

// keyOf is a key template of one field.
func keyOf(in *text) (string, error) {
	return backstage.JoinKey(backstage.KeyText("k/"), backstage.KeyField("value", in.GetValue(), in.GetValue() != ""))
}

func job(t backstage.Task[*text], value string, opts ...backstage.EnqueueOption) backstage.Job {
	return backstage.NewJob(t, wrapperspb.String(value), opts...)
}

// enqueue stores one job and returns its receipt.
func (r *rig) enqueue(j backstage.Job) backstage.Receipt {
	r.Helper()
	receipt, err := backstage.Enqueue(r.Context(), r.client, j)
	if err != nil {
		r.Fatalf("enqueue: %v", err)
	}
	return receipt
}

// put stores a record as another version or another worker may have left it.
func (r *rig) put(j provider.Job) {
	r.Helper()
	if j.Payload == nil {
		j.Payload, _ = proto.Marshal(wrapperspb.String("x"))
	}
	if j.Queue == "" {
		j.Queue = backstage.DefaultQueue
	}
	if j.Enqueued.IsZero() {
		j.Enqueued = time.Now()
	}
	if j.FirstDue.IsZero() {
		j.FirstDue = j.Enqueued
	}
	record, err := provider.Marshal(&j)
	if err != nil {
		r.Fatalf("marshal record: %v", err)
	}
	r.store.Put(j.Queue, record)
}

// handled is a task with its handler, to be registered.
type handled func(*backstage.Worker)

func handle(name string, f func(ctx context.Context, in string) error, opts ...any) handled {
	return chain(name, func(ctx context.Context, in string, _ *backstage.Next) error { return f(ctx, in) }, opts...)
}

// chain takes a policy, a registration to start from, and register options.
func chain(name string, f func(ctx context.Context, in string, next *backstage.Next) error, opts ...any) handled {
	return func(w *backstage.Worker) {
		reg := backstage.Registration{}
		var options []backstage.RegisterOption
		for _, opt := range opts {
			switch opt := opt.(type) {
			case backstage.Registration:
				reg = opt
			case backstage.Policy:
				reg.Policy = opt
			case backstage.RegisterOption:
				options = append(options, opt)
			default:
				panic(fmt.Sprintf("option of type %T", opt))
			}
		}
		reg.Name = name
		backstage.RegisterChain(w, reg, func(ctx context.Context, in *text, next *backstage.Next) error {
			return f(ctx, in.GetValue(), next)
		}, options...)
	}
}

// nothing is a handler that has nothing to do.
func nothing(context.Context, string) error { return nil }

// running is a worker whose Run has been called.
type running struct {
	*backstage.Worker
	r      *rig
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// start runs a worker until the test ends.
func (r *rig) start(cfg backstage.WorkerConfig, tasks ...handled) *running {
	r.Helper()
	w := r.newWorker(cfg, tasks...)
	ctx, cancel := context.WithCancel(context.Background())
	run := &running{Worker: w, r: r, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(run.done)
		run.err = w.Run(ctx)
	}()
	r.Cleanup(func() { _ = run.stop() })
	r.last = run
	synctest.Wait()
	return run
}

func (r *rig) newWorker(cfg backstage.WorkerConfig, tasks ...handled) *backstage.Worker {
	r.Helper()
	if cfg.Observer == nil {
		cfg.Observer = r.events.add
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 10
	}
	if cfg.Lease == 0 {
		cfg.Lease = 30 * time.Second
	}
	cfg.Logger = slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w, err := backstage.NewWorker(r.p, cfg)
	if err != nil {
		r.Fatalf("new worker: %v", err)
	}
	for _, register := range tasks {
		register(w)
	}
	return w
}

// stop ends the worker and returns what Run returns.
func (w *running) stop() error {
	w.cancel()
	<-w.done
	return w.err
}

// pass lets time pass, and all that happens in it happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// dead returns the dead letters, newest first.
func (r *rig) dead() []provider.DeadLetter {
	r.Helper()
	letters, _, err := r.p.Dead.List(context.Background(), provider.DeadFilter{}, "")
	if err != nil {
		r.Fatalf("list dead letters: %v", err)
	}
	return letters
}

// onlyDead returns the one dead letter.
func (r *rig) onlyDead() provider.DeadLetter {
	r.Helper()
	letters := r.dead()
	if len(letters) != 1 {
		r.Fatalf("there are %d dead letters, want 1; the log:\n%s", len(letters), r.events)
	}
	return letters[0]
}

// wantNothingLeft fails if a job is unsettled, held or dead.
func (r *rig) wantNothingLeft(queues ...string) {
	r.Helper()
	for _, q := range append(queues, backstage.DefaultQueue) {
		stats, err := r.p.Stats.Queue(context.Background(), q)
		if err != nil {
			r.Fatalf("stats: %v", err)
		}
		held, err := r.p.Delays.Held(context.Background(), q)
		if err != nil {
			r.Fatalf("held: %v", err)
		}
		for what, m := range map[string]provider.Measure[int64]{"ready": stats.Depth, "in flight": stats.InFlight, "held": held, "dead": stats.Dead} {
			if n, known := m.Get(); !known || n != 0 {
				r.Errorf("queue %s: %s = %v, want 0; the log:\n%s", q, what, m, r.events)
			}
		}
	}
}

// wantLife fails unless what was observed of a job is exactly this.
func (r *rig) wantLife(id string, want ...string) {
	r.Helper()
	if got := r.events.life(id); !slices.Equal(got, want) {
		r.Errorf("life of job %s:\n got  %s\n want %s", id, strings.Join(got, "; "), strings.Join(want, "; "))
	}
}

// eventLog keeps what an Observer is told.
type eventLog struct {
	began time.Time

	mu   sync.Mutex
	seen []observed
}

type observed struct {
	at time.Duration
	backstage.Event
}

func (l *eventLog) add(e backstage.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, observed{time.Since(l.began), e})
}

// life returns what was observed of one job, in words. Its enqueues come first,
// because a worker may start it before its client is told that it is stored.
func (l *eventLog) life(id string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var enqueued, later []string
	for _, e := range l.seen {
		of, word := inWords(e.Event)
		if _, first := e.Event.(backstage.JobEnqueued); of == id && first {
			enqueued = append(enqueued, word)
		} else if of == id {
			later = append(later, word)
		}
	}
	return append(enqueued, later...)
}

// String returns all that was observed, with times.
func (l *eventLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, e := range l.seen {
		id, word := inWords(e.Event)
		fmt.Fprintf(&b, "  %10v %s %s\n", e.at, id, word)
	}
	return b.String()
}

// eventsOf returns the events of one type, with their times.
func eventsOf[E backstage.Event](l *eventLog) (events []E, at []time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.seen {
		if of, ok := e.Event.(E); ok {
			events, at = append(events, of), append(at, e.at)
		}
	}
	return events, at
}

// inWords returns of which job an event is, and what it says.
func inWords(e backstage.Event) (id, words string) {
	switch e := e.(type) {
	case backstage.JobEnqueued:
		return e.Job.ID(), "enqueued: " + e.Receipt.Outcome.String()
	case backstage.RunStarted:
		return e.Job.ID, fmt.Sprintf("run %d", e.Job.Attempt)
	case backstage.RunEnded:
		words = string(e.Result)
		if e.Late {
			words += " late"
		}
		if e.Reason != "" {
			words += " (" + strings.TrimSpace(e.Guard+" "+e.Reason) + ")"
		}
		return e.Job.ID, words
	case backstage.RunStuck:
		return e.Job.ID, "stuck"
	case backstage.LeaseLost:
		return e.Job.ID, "lease lost"
	case backstage.SettlementFailed:
		return e.Job.ID, "not " + string(e.Settlement)
	case backstage.JobSettled:
		words = string(e.Settlement)
		switch {
		case e.Next > 0:
			words += fmt.Sprintf(" with %d next", e.Next)
		case e.Why == provider.SnoozedAgain:
			words += " as snoozed"
		case e.Why == provider.ParkedAgain:
			words += " as parked"
		case e.Why == provider.StartedAgain:
			words += " to start"
		case e.Failure.Class != "":
			words += " as " + e.Failure.Class
		}
		return e.Job.ID, words
	case backstage.WorkerStarted:
		return "worker", "started on " + strings.Join(e.Queues, ",")
	case backstage.WorkerStopped:
		return "worker", "stopped"
	case backstage.ProviderReported:
		return "provider", string(e.Event.Kind)
	case backstage.PromoterFailed:
		return "promoter", "failed"
	}
	return "", fmt.Sprintf("%T", e)
}

// logBuffer keeps what is logged.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// ledger is what handlers write down, in order.
type ledger struct {
	began time.Time

	mu    sync.Mutex
	lines []string
	times []time.Duration
}

func newLedger() *ledger { return &ledger{began: time.Now()} }

func (l *ledger) write(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	l.times = append(l.times, time.Since(l.began))
}

func (l *ledger) read() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func (l *ledger) at() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.times)
}

func (l *ledger) count() int { return len(l.read()) }

// counter counts what happens in handlers.
type counter struct{ n atomic.Int64 }

func (c *counter) add() int { return int(c.n.Add(1)) }
func (c *counter) get() int { return int(c.n.Load()) }

// hooks get between the runtime and the provider. They are set while nothing runs.
type hooks struct {
	facts     func(*provider.JobFacts)
	publish   func(jobs []provider.Job, opts provider.PublishOptions, do func() []provider.Stored) []provider.Stored
	subscribe func(provider.SubscribeOptions) error
	receive   func(ctx context.Context, lanes []string, max int, do func() ([]provider.Delivery, error)) ([]provider.Delivery, error)
	extend    func(ctx context.Context, n int, do func() []error) []error
	settle    func(verb string, d provider.Delivery, do func() error) error
	ack       func(d provider.Delivery, next []provider.Job)
	noLost    bool            // only Extend tells
	session   <-chan struct{} // in place of what each delivery's Lost returns
}

type hookedJobs struct {
	provider.Jobs
	hooks *hooks
}

func (j *hookedJobs) Facts() provider.JobFacts {
	facts := j.Jobs.Facts()
	if j.hooks.facts != nil {
		j.hooks.facts(&facts)
	}
	return facts
}

func (j *hookedJobs) Publish(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions) []provider.Stored {
	do := func() []provider.Stored { return j.Jobs.Publish(ctx, jobs, opts) }
	if j.hooks.publish != nil {
		return j.hooks.publish(jobs, opts, do)
	}
	return do()
}

func (j *hookedJobs) Subscribe(ctx context.Context, opts provider.SubscribeOptions) (provider.Subscription, error) {
	if j.hooks.subscribe != nil {
		if err := j.hooks.subscribe(opts); err != nil {
			return nil, err
		}
	}
	sub, err := j.Jobs.Subscribe(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &hookedSubscription{sub, j.hooks}, nil
}

type hookedSubscription struct {
	provider.Subscription
	hooks *hooks
}

func (s *hookedSubscription) Receive(ctx context.Context, lanes []string, max int) ([]provider.Delivery, error) {
	do := func() ([]provider.Delivery, error) {
		got, err := s.Subscription.Receive(ctx, lanes, max)
		for i := range got {
			got[i] = &hookedDelivery{got[i], s.hooks}
		}
		return got, err
	}
	if s.hooks.receive != nil {
		return s.hooks.receive(ctx, lanes, max, do)
	}
	return do()
}

func (s *hookedSubscription) Extend(ctx context.Context, deliveries []provider.Delivery) []error {
	inner := make([]provider.Delivery, len(deliveries))
	for i, d := range deliveries {
		inner[i] = d.(*hookedDelivery).Delivery
	}
	do := func() []error { return s.Subscription.Extend(ctx, inner) }
	if s.hooks.extend != nil {
		return s.hooks.extend(ctx, len(inner), do)
	}
	return do()
}

type hookedDelivery struct {
	provider.Delivery
	hooks *hooks
}

func (d *hookedDelivery) Lost() <-chan struct{} {
	if d.hooks.noLost || d.hooks.session != nil {
		return d.hooks.session
	}
	return d.Delivery.Lost()
}

func (d *hookedDelivery) settle(verb string, do func() error) error {
	if d.hooks.settle != nil {
		return d.hooks.settle(verb, d.Delivery, do)
	}
	return do()
}

func (d *hookedDelivery) Ack(ctx context.Context, next []provider.Job) error {
	if d.hooks.ack != nil {
		d.hooks.ack(d.Delivery, next)
	}
	return d.settle("ack", func() error { return d.Delivery.Ack(ctx, next) })
}

func (d *hookedDelivery) Retry(ctx context.Context, again provider.Again) error {
	return d.settle("retry", func() error { return d.Delivery.Retry(ctx, again) })
}

func (d *hookedDelivery) DeadLetter(ctx context.Context, f provider.Failure) error {
	return d.settle("dead", func() error { return d.Delivery.DeadLetter(ctx, f) })
}

func (d *hookedDelivery) Release(ctx context.Context) error {
	return d.settle("release", func() error { return d.Delivery.Release(ctx) })
}
