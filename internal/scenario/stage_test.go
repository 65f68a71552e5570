package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers"
	"github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// stage is a store with a client on it.
type stage struct {
	t        *testing.T
	store    store
	broker   broker
	ledger   ledger
	provider *provider.Provider
	client   *backstage.Client

	ownServer  bool      // which the scenario treats badly
	quietSince time.Time // of untilQuiet, zero while something is to be done
}

// store is where jobs are.
type store struct {
	Address string // as providers.Open takes it
	Lend    string // of whose delays and claims are borrowed; empty: nobody's
}

// open opens a store, and returns it with what closes it.
func (s store) open(ctx context.Context) (p *provider.Provider, shut func(context.Context) error, err error) {
	if p, err = providers.Open(ctx, s.Address); err != nil || s.Lend == "" {
		return p, func(ctx context.Context) error { return p.Close(ctx) }, err
	}
	lender, err := providers.Open(ctx, s.Lend)
	if err != nil {
		return nil, nil, errors.Join(err, p.Close(ctx))
	}
	p.Delays, p.Claims = lender.Lend("scenario")
	return p, func(ctx context.Context) error { return errors.Join(p.Close(ctx), lender.Close(ctx)) }, nil
}

// newStage opens a new store.
func newStage(t *testing.T, b broker, at store) *stage {
	t.Helper()
	s := &stage{t: t, broker: b, store: at, ledger: ledger(filepath.Join(t.TempDir(), "ledger"))}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var shut func(context.Context) error
	var err error
	if s.provider, shut, err = at.open(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shut(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
		if s.facts().Confirmed || !s.ownServer {
			s.ledger.checkDoneIsDone(t)
		}
	})
	if s.client, err = backstage.NewClient(s.provider, backstage.ClientConfig{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// setup returns what a worker process of this stage is.
func (s *stage) setup(queue string, concurrency int) setup {
	return setup{Store: s.store, Ledger: s.ledger, Queue: queue, Concurrency: concurrency, Lease: calm}
}

// mortal returns what a worker process is that may be killed.
func (s *stage) mortal(queue string, concurrency int) setup {
	m := s.setup(queue, concurrency)
	m.Lease = s.lease()
	return m
}

// lease is that of a mortal worker.
func (s *stage) lease() time.Duration { return cmp.Or(s.broker.lease, lease) }

// takeover is the longest until a dead worker's jobs start elsewhere.
func (s *stage) takeover() time.Duration { return s.lease() + 5*time.Second + room }

// worker runs a worker in this process until the test ends.
func (s *stage) worker(queue string, concurrency int, lease time.Duration, handle func(context.Context, payload, *backstage.Next) error) *backstage.Worker {
	s.t.Helper()
	w, err := backstage.NewWorker(s.provider, backstage.WorkerConfig{
		Concurrency: concurrency, Lease: lease, Logger: slog.New(slog.DiscardHandler), Observer: s.ledger.observe,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	backstage.RegisterChain(w, registration(queue), handle)
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- w.Run(ctx) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			s.t.Errorf("worker: %v", err)
		}
	})
	return w
}

func (s *stage) enqueue(jobs ...backstage.Job) []backstage.Receipt {
	s.t.Helper()
	receipts, err := s.client.Enqueue(s.t.Context(), jobs...)
	if err != nil {
		s.t.Fatal(err)
	}
	return receipts
}

// until waits for a condition, and fails with what it says otherwise.
func (s *stage) until(most time.Duration, condition func() (ok bool, state string)) {
	s.t.Helper()
	deadline := time.Now().Add(most)
	for {
		ok, state := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("after %v: %s", most, state)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// untilWritten waits until the ledger has n entries of a kind about a subject, and
// returns them.
func (s *stage) untilWritten(most time.Duration, what, subject string, n int) []entry {
	s.t.Helper()
	var entries []entry
	s.until(most, func() (bool, string) {
		entries = s.ledger.of(s.t, what, subject)
		return len(entries) >= n, fmt.Sprintf("%d times %q of %s, want %d", len(entries), what, subject, n)
	})
	return entries
}

// numbers returns the sum of the numbers of all queues.
func (s *stage) numbers() (depth, inFlight, held int64) {
	s.t.Helper()
	queues, err := s.provider.Stats.Queues(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, queue := range queues {
		stats, err := s.provider.Stats.Queue(s.t.Context(), queue)
		if err != nil {
			s.t.Fatal(err)
		}
		for sum, m := range map[*int64]provider.Measure[int64]{&depth: stats.Depth, &inFlight: stats.InFlight, &held: stats.Held} {
			n, _ := m.Get()
			*sum += n
		}
	}
	return depth, inFlight, held
}

// untilQuiet waits until nothing is ready, running or held. Queues are looked at one
// after the other: who moves from one to another meanwhile may be overlooked.
func (s *stage) untilQuiet(most time.Duration) {
	s.t.Helper()
	s.until(most+s.broker.late, s.quiet)
}

// quiet reports whether nothing is ready, running or held, and has not been for as long
// as numbers may be late.
func (s *stage) quiet() (bool, string) {
	s.t.Helper()
	depth, inFlight, held := s.numbers()
	switch {
	case depth+inFlight+held > 0:
		s.quietSince = time.Time{}
	case s.quietSince.IsZero():
		s.quietSince = time.Now()
	}
	quiet := !s.quietSince.IsZero() && time.Since(s.quietSince) >= s.broker.late
	if quiet {
		s.quietSince = time.Time{}
	}
	return quiet, fmt.Sprintf("not quiet: %d wait, %d run, %d are held", depth, inFlight, held)
}

// dead returns the dead letters by their jobs' ids.
func (s *stage) dead() map[string]provider.DeadLetter {
	s.t.Helper()
	all := make(map[string]provider.DeadLetter)
	for _, letter := range s.letters(provider.DeadFilter{}) {
		all[letter.Job.ID] = letter
	}
	return all
}

// letters returns the dead letters that match, page by page.
func (s *stage) letters(filter provider.DeadFilter) []provider.DeadLetter {
	s.t.Helper()
	var all []provider.DeadLetter
	for page := ""; ; {
		letters, next, err := s.provider.Dead.List(s.t.Context(), filter, page)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, letters...)
		if next == "" {
			return all
		}
		page = next
	}
}

// checkEnds fails the test unless each subject ended between so many times.
func (s *stage) checkEnds(least, most int, subjects ...string) {
	s.t.Helper()
	ends := s.ledger.bySubject(s.t, "end")
	for _, subject := range subjects {
		if n := ends[subject]; n < least || n > most {
			s.t.Errorf("%s ended %d times, want %d to %d", subject, n, least, most)
		}
	}
}

// checkNoneIsDead fails the test if there are dead letters.
func (s *stage) checkNoneIsDead() {
	s.t.Helper()
	for id, letter := range s.dead() {
		s.t.Errorf("job %s is dead: %s: %s", id, letter.Failure.Class, letter.Failure.Message)
	}
}

// numbered makes n jobs that do the same, and says what they are about.
func numbered(n int, queue, prefix, deed string, opts ...backstage.EnqueueOption) (jobs []backstage.Job, subjects []string) {
	for i := range n {
		subject := fmt.Sprintf("%s%d", prefix, i)
		subjects = append(subjects, subject)
		jobs = append(jobs, job(queue, subject+" "+deed, opts...))
	}
	return jobs, subjects
}

// long returns the count of a scenario's long form under BACKSTAGE_SOAK, and of
// its short form otherwise.
func long(short, soak int) int {
	if os.Getenv("BACKSTAGE_SOAK") != "" {
		return soak
	}
	return short
}
