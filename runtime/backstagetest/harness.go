package backstagetest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime"
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
	start  sync.Once
	mu     sync.Mutex
	events []backstage.Event
}

// New returns a harness whose worker runs what register registers, once Drain or
// Advance is called. It is stopped when the test ends; a worker that does not
// start or stop as it should fails the test. In a bubble of testing/synctest it
// must be made inside the bubble.
func New(t testing.TB, register func(*backstage.Worker)) *Harness {
	t.Helper()
	h := &Harness{t: t}
	var err error
	if h.Provider, err = memory.Open(memory.Config{}); err != nil {
		t.Fatalf("backstagetest: open the store: %v", err)
	}
	if h.Client, err = backstage.NewClient(h.Provider, backstage.ClientConfig{Observer: h.observe}); err != nil {
		t.Fatalf("backstagetest: %v", err)
	}
	h.worker, err = backstage.NewWorker(h.Provider, backstage.WorkerConfig{Observer: h.observe, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("backstagetest: %v", err)
	}
	register(h.worker)
	return h
}

// Drain runs jobs until none is ready and none runs. Jobs that wait for their
// time stay (see Advance). It fails the test if jobs do not become quiet within a
// minute, because nobody serves their queue or a handler does not return.
func (h *Harness) Drain() {
	h.t.Helper()
	h.start.Do(h.run)
	quiet := 0
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		left, err := h.left()
		switch {
		case err != nil:
			h.t.Fatalf("backstagetest: %v", err)
		case left != "":
			quiet = 0
		default:
			// Twice, because a job may be due in this very moment.
			if quiet++; quiet == 2 {
				return
			}
		}
		if time.Since(began) > patience {
			h.t.Fatalf("backstagetest: not quiet after %v: %s", patience, left)
		}
	}
}

// Advance lets time pass and then drains. In a bubble of testing/synctest it
// takes no time; elsewhere it sleeps.
func (h *Harness) Advance(d time.Duration) {
	h.t.Helper()
	h.start.Do(h.run)
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

func (h *Harness) observe(event backstage.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
}

// run starts the worker, and stops it when the test ends.
func (h *Harness) run() {
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- h.worker.Run(ctx) }()
	h.t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			h.t.Errorf("backstagetest: worker: %v", err)
		}
		if err := h.Provider.Close(context.Background()); err != nil {
			h.t.Errorf("backstagetest: close the store: %v", err)
		}
	})
}

// left says what is not quiet.
func (h *Harness) left() (string, error) {
	queues, err := h.Provider.Stats.Queues(h.t.Context())
	if err != nil {
		return "", err
	}
	var busy []string
	for _, queue := range queues {
		stats, err := h.Provider.Stats.Queue(h.t.Context(), queue)
		if err != nil {
			return "", err
		}
		ready, _ := stats.Depth.Get()
		running, _ := stats.InFlight.Get()
		if ready+running > 0 {
			busy = append(busy, fmt.Sprintf("queue %q has %d ready and %d running", queue, ready, running))
		}
	}
	return strings.Join(busy, ", "), nil
}
