package backstagetest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// patience is how long Drain waits for jobs that do not become quiet.
const patience = time.Minute

// Harness is a store in memory, a client and a worker on it.
type Harness struct {
	// Client enqueues into the store.
	Client *backstage.Client
	// Provider is the store.
	Provider *provider.Provider

	t      testing.TB
	worker *backstage.Worker
	made   time.Time
	start  sync.Once
	ended  chan struct{} // closed when the worker's Run has returned
	err    error         // what it returned, once ended is closed
	told   string        // what was last logged of other queues

	mu     sync.Mutex
	events []backstage.Event
	served []string                   // by the worker; nil until it has started
	next   map[string][]backstage.Job // of runs that succeeded and are not settled, by job
	sent   []backstage.Job
}

// New returns a harness whose worker runs what register registers, once Drain or
// Advance is called. It is stopped when the test ends; a worker that does not
// start or stop as it should fails the test. In a bubble of testing/synctest it
// must be made inside the bubble.
func New(t testing.TB, register func(*backstage.Worker)) *Harness {
	t.Helper()
	h := &Harness{t: t, made: time.Now(), ended: make(chan struct{}), next: make(map[string][]backstage.Job)}
	var err error
	if h.Provider, err = memory.Open(memory.Config{}); err != nil {
		t.Fatalf("backstagetest: open the store: %v", err)
	}
	if h.Client, err = backstage.NewClient(h.Provider, backstage.ClientConfig{Observer: h.observe}); err != nil {
		t.Fatalf("backstagetest: %v", err)
	}
	h.worker, err = backstage.NewWorker(h.Provider, backstage.WorkerConfig{
		Observer:     h.observe,
		Interceptors: []backstage.Interceptor{h.noteNext},
		Logger:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatalf("backstagetest: %v", err)
	}
	register(h.worker)
	return h
}

// Drain runs jobs until none is ready and none runs. Jobs that wait for their
// time stay (see Advance), and so do those in queues that no registered task
// names: they are another service's, and Sent returns them.
//
// It fails the test if it met a job in a queue of this worker whose task is not
// registered, and if jobs do not become quiet within a minute, because a handler
// does not return.
func (h *Harness) Drain() {
	h.t.Helper()
	h.begin()
	quiet := 0
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		left, err := h.left()
		switch {
		case err != nil:
			h.t.Fatalf("backstagetest: %v", err)
		case left != "":
			quiet = 0
		default:
			quiet++
		}
		if quiet == 2 { // twice, because a job may be due in this very moment
			break
		}
		if time.Since(began) > patience {
			h.t.Fatalf("backstagetest: not quiet after %v: %s", patience, left)
		}
	}
	if unknown := h.unknown(); unknown != "" {
		h.t.Fatalf("backstagetest: nobody here runs %s: register its handler, or a stub that returns nil, with the worker", unknown)
	}
	h.tellOthers()
}

// Advance lets time pass and then drains. In a bubble of testing/synctest it
// takes no time; elsewhere it sleeps.
func (h *Harness) Advance(d time.Duration) {
	h.t.Helper()
	h.begin()
	time.Sleep(d)
	h.Drain()
}

// Events returns what has happened, in order.
func (h *Harness) Events() []backstage.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]backstage.Event(nil), h.events...)
}

// Runs returns how the runs of a task ended, in order; those of all tasks for an
// empty name.
func (h *Harness) Runs(task string) []backstage.RunEnded {
	var runs []backstage.RunEnded
	for _, event := range h.Events() {
		if run, ok := event.(backstage.RunEnded); ok && (task == "" || run.Job.Task == task) {
			runs = append(runs, run)
		}
	}
	return runs
}

// Sent returns the jobs that were sent to a queue, by the client and by handlers
// that succeeded, whether anybody here serves it or not, to be compared by Diff;
// those of all queues for an empty name. Those of one caller are in its order.
func (h *Harness) Sent(queue string) []backstage.Job {
	h.mu.Lock()
	defer h.mu.Unlock()
	var jobs []backstage.Job
	for _, job := range h.sent {
		if queue == "" || job.Queue() == queue {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// Dead returns the dead letters, newest first.
func (h *Harness) Dead() []provider.DeadLetter {
	h.t.Helper()
	var all []provider.DeadLetter
	for page := ""; ; {
		letters, next, err := h.Provider.Dead.List(h.t.Context(), provider.DeadFilter{}, page)
		if err != nil {
			h.t.Fatalf("backstagetest: list the dead letters: %v", err)
		}
		if all = append(all, letters...); next == "" {
			return all
		}
		page = next
	}
}

// Held returns how many jobs of a queue wait for their time.
func (h *Harness) Held(queue string) int {
	h.t.Helper()
	held, err := h.Provider.Delays.Held(h.t.Context(), queue)
	n, known := held.Get()
	if err != nil || !known {
		h.t.Fatalf("backstagetest: count held jobs: %v (known: %t)", err, known)
	}
	return int(n)
}

// begin starts the worker once.
func (h *Harness) begin() {
	h.t.Helper()
	// A bubble's time begins in the year 2000. Channels of the store from outside
	// would keep it from passing, and the test would hang.
	if time.Now().Round(0).Before(h.made.Round(0)) {
		h.t.Fatalf("backstagetest: the Harness was made outside of the synctest bubble in which it is used: call New inside of synctest.Test")
	}
	h.start.Do(h.run)
}

// run starts the worker, and stops it when the test ends.
func (h *Harness) run() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(h.ended)
		h.err = h.worker.Run(ctx)
	}()
	h.t.Cleanup(func() {
		cancel()
		if <-h.ended; h.err != nil {
			h.t.Errorf("backstagetest: worker: %v", h.err)
		}
		if err := h.Provider.Close(context.Background()); err != nil {
			h.t.Errorf("backstagetest: close the store: %v", err)
		}
	})
}
