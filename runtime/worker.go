package backstage

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// The defaults of a worker.
const (
	// DefaultLease is how long a delivery is a worker's without a heartbeat.
	DefaultLease = 30 * time.Second
	// DefaultShutdownGrace is how long a stopping worker waits for its handlers.
	DefaultShutdownGrace = 20 * time.Second
	// ConcurrencyPerCore is how many handlers run at once for each core.
	ConcurrencyPerCore = 10
	// MaxConcurrency is the most of them.
	MaxConcurrency = 1 << 20
	// MaxCrashes is how many crashes dead-letter a job.
	MaxCrashes = 5
)

// WorkerConfig configures a Worker. The zero value works.
type WorkerConfig struct {
	// Name is the worker's name, for operators. A random suffix makes it unique
	// to the process. Defaults to the host's name.
	Name string
	// Queues are the queues to serve. Defaults to those of the registered tasks,
	// with equal weight. A registered task none of whose queues is among them can
	// never run, and is an error of Run.
	Queues []Queue
	// StrictPriority serves the queues in the order of Queues: a later one only
	// while the earlier ones are empty. It needs Queues. Defaults to weights.
	StrictPriority bool
	// Concurrency is how many handlers run at once, at most MaxConcurrency. Defaults to
	// ConcurrencyPerCore for each core (GOMAXPROCS).
	Concurrency int
	// Lease is how long a job is this worker's without a heartbeat, which is sent
	// every third of it. A dead worker's jobs are taken over within one lease
	// plus five seconds. Defaults to DefaultLease.
	Lease time.Duration
	// ShutdownGrace is how long Run waits for handlers after its context has
	// ended, before it cancels them. Defaults to DefaultShutdownGrace.
	ShutdownGrace time.Duration
	// Interceptors are around every handler; the first is the outermost.
	// Defaults to none.
	Interceptors []Interceptor
	// PayloadLimit is the most bytes of the payload of a next job. Defaults to
	// DefaultPayloadLimit.
	PayloadLimit int
	// Observer is told what happens, synchronously. Defaults to nobody.
	Observer Observer
	// OnStuck is called, in a goroutine of its own, when a handler still runs one
	// lease after its deadline. It may end the process: the job then counts a
	// crash. Defaults to nothing.
	OnStuck func(RunStuck)
	// Logger is told what an operator should know. Payloads are never logged.
	// Defaults to slog.Default().
	Logger *slog.Logger
}

// Queue is a queue that a worker serves.
type Queue struct {
	// Name is the queue's name: at most 200 bytes of plain ASCII without spaces.
	Name string
	// Weight is its share of the worker's attention while all queues have work.
	// Defaults to 1.
	Weight int
}

// Worker runs jobs. Register tasks with generated code, then call Run. It may run
// once.
type Worker struct {
	cfg    WorkerConfig
	broker broker

	mu    sync.Mutex
	tasks []*registered
	shift *shift
	began bool
}

// NewWorker returns a worker on a provider. It fails for a nil provider and for a
// configuration that is out of range; all else is found by Run.
func NewWorker(p *provider.Provider, cfg WorkerConfig) (*Worker, error) {
	if p == nil || p.Jobs == nil {
		return nil, errors.New("new worker: the provider is nil")
	}
	cfg.Concurrency = cmp.Or(cfg.Concurrency, ConcurrencyPerCore*runtime.GOMAXPROCS(0))
	cfg.Lease = cmp.Or(cfg.Lease, DefaultLease)
	cfg.ShutdownGrace = cmp.Or(cfg.ShutdownGrace, DefaultShutdownGrace)
	cfg.PayloadLimit = cmp.Or(cfg.PayloadLimit, DefaultPayloadLimit)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	cfg.Observer = cfg.Observer.guarded(cfg.Logger)
	if cfg.Name == "" {
		cfg.Name, _ = os.Hostname() // an unknown host leaves the suffix
	}
	cfg.Name += "-" + rand.Text()[:8]
	cfg.Queues = slices.Clone(cfg.Queues)
	for i := range cfg.Queues {
		cfg.Queues[i].Weight = cmp.Or(cfg.Queues[i].Weight, 1)
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("new worker: %w", err)
	}
	return &Worker{cfg: cfg, broker: broker{p}}, nil
}

// Name returns the worker's name, which is unique to it.
func (w *Worker) Name() string { return w.cfg.Name }

// Run receives and runs jobs until ctx ends. Before it receives it returns
// everything that is wrong with the registrations and all that the provider
// lacks for them, joined.
//
// When ctx ends it stops receiving, gives back what has not started, waits for
// running handlers for the grace period, cancels their contexts with ErrShutdown,
// and settles or releases their jobs. It returns nil if all was settled, and an
// error that counts what was not: those jobs are delivered again after their
// lease. It also returns when the provider fails for good. It installs no signal
// handler; signal.NotifyContext makes the context that a program wants.
func (w *Worker) Run(ctx context.Context) error {
	s, err := w.begin(ctx)
	if s == nil {
		return err
	}
	w.observe(WorkerStarted{Worker: w.cfg.Name, Queues: s.lanes.names()})
	w.cfg.Logger.Info("worker started", "worker", w.cfg.Name, "queues", s.lanes.names(), "concurrency", w.cfg.Concurrency)
	if next := w.elsewhere(s.byName); len(next) > 0 {
		w.cfg.Logger.Info("next tasks that other workers must run", "worker", w.cfg.Name, "tasks", next)
	}
	err = s.run(ctx)
	w.mu.Lock()
	w.shift = nil
	w.mu.Unlock()
	w.observe(WorkerStopped{Worker: w.cfg.Name, Err: err})
	if err != nil {
		w.cfg.Logger.Error("worker stopped", "worker", w.cfg.Name, "error", err)
	} else {
		w.cfg.Logger.Info("worker stopped", "worker", w.cfg.Name)
	}
	return err
}

func (w *Worker) observe(e Event) {
	if w.cfg.Observer != nil {
		w.cfg.Observer(e)
	}
}

func (w *Worker) register(r *registered) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.began {
		w.cfg.Logger.Error("a task was registered after Run was called, and is not run by this worker", "worker", w.cfg.Name, "task", r.Name)
		return
	}
	w.tasks = append(w.tasks, r)
}

// begin checks everything that can be wrong before a job is received, and
// subscribes. It returns no shift if ctx ends before that.
func (w *Worker) begin(ctx context.Context) (*shift, error) {
	w.mu.Lock()
	if w.began {
		w.mu.Unlock()
		return nil, errors.New("worker has run already; make a new one")
	}
	w.began = true
	w.mu.Unlock()
	s, err := w.newShift(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began, w.shift = s != nil, s
	return s, err
}

// newShift is begin without the lock, which Health takes meanwhile.
func (w *Worker) newShift(ctx context.Context) (*shift, error) {
	if len(w.tasks) == 0 {
		return nil, errors.New("no task is registered; call the Register function of a generated package")
	}
	byName, lanes, err := w.check()
	if err != nil {
		return nil, err
	}
	s := newShift(w, byName, lanes)
	opts := provider.SubscribeOptions{
		Worker:       w.cfg.Name,
		Lanes:        lanes.all(),
		MaxUnsettled: s.maxUnsettled(),
		Lease:        w.cfg.Lease,
	}
	for _, r := range w.tasks {
		policy := r.Policy.over(provider.Overrides{})
		opts.LongestRun = max(opts.LongestRun, policy.Timeout)
		opts.MaxAge = max(opts.MaxAge, policy.MaxAge)
	}
	s.sub, err = w.broker.Jobs.Subscribe(ctx, opts)
	switch {
	case err == nil:
		return s, nil
	case ctx.Err() != nil:
		return nil, nil
	}
	return nil, fmt.Errorf("subscribe: %w", w.broker.named(err))
}
