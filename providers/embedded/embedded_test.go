package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
	"github.com/google/go-cmp/cmp"
)

const testLease = 2 * time.Second

// openAt opens a file for a test, and closes it at its end.
func openAt(t *testing.T, path string, cfg Config, in internals) *store {
	t.Helper()
	s, err := open(path, cfg, in)
	if err != nil {
		t.Fatalf("opening %s: %v", path, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.close(ctx); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return s
}

func openNew(t *testing.T, cfg Config) *store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "jobs.db"), cfg, internals{})
}

// job makes a job; change may adapt it.
func job(id string, change ...func(*provider.Job)) provider.Job {
	j := provider.Job{ID: id, Task: "test.Task", Queue: "q", Payload: []byte("payload of " + id), Enqueued: time.Unix(1700000000, 0), FirstDue: time.Unix(1700000000, 0)}
	for _, f := range change {
		f(&j)
	}
	return j
}

func onQueue(q string) func(*provider.Job)        { return func(j *provider.Job) { j.Queue = q } }
func keyed(k string) func(*provider.Job)          { return func(j *provider.Job) { j.OrderingKey = k } }
func delayed(d time.Duration) func(*provider.Job) { return func(j *provider.Job) { j.Delay = d } }
func deduped(key string, d time.Duration) func(*provider.Job) {
	return func(j *provider.Job) { j.Dedupe = provider.Dedupe{Key: key, For: d} }
}
func untilDone(key string) func(*provider.Job) {
	return func(j *provider.Job) { j.Dedupe = provider.Dedupe{Key: key, UntilDone: true} }
}

// publish stores jobs, and fails the test unless all are stored.
func publish(t *testing.T, s *store, jobs ...provider.Job) {
	t.Helper()
	for _, r := range s.Publish(t.Context(), jobs, provider.PublishOptions{}) {
		if r.Outcome != provider.OutcomeStored {
			t.Fatalf("publishing %s: %v, %v; want stored", r.ID, r.Outcome, r.Err)
		}
	}
}

// subscribe makes a worker on queue q and others.
func subscribe(t *testing.T, s *store, queues ...string) *subscription {
	t.Helper()
	return subscribeFor(t, s, testLease, append([]string{"q"}, queues...)...)
}

func subscribeFor(t *testing.T, s *store, lease time.Duration, queues ...string) *subscription {
	t.Helper()
	opts := provider.SubscribeOptions{Worker: fmt.Sprintf("w%p", t), Lease: lease, MaxUnsettled: 100}
	for _, q := range queues {
		opts.Lanes = append(opts.Lanes, provider.Lane{Queue: q, Slots: 1})
	}
	sub, err := s.Subscribe(t.Context(), opts)
	if err != nil {
		t.Fatalf("subscribing: %v", err)
	}
	return sub.(*subscription)
}

// receive returns what comes within a time, at most so many.
func receive(t *testing.T, sub *subscription, most int, within time.Duration, lanes ...string) []provider.Delivery {
	t.Helper()
	if len(lanes) == 0 {
		lanes = []string{"q"}
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var all []provider.Delivery
	for len(all) < most {
		got, err := sub.Receive(ctx, lanes, most-len(all))
		all = append(all, got...)
		if err != nil {
			break
		}
	}
	return all
}

// mustReceive returns exactly so many deliveries.
func mustReceive(t *testing.T, sub *subscription, count int, lanes ...string) []provider.Delivery {
	t.Helper()
	got := receive(t, sub, count, time.Minute, lanes...)
	if len(got) != count {
		t.Fatalf("received %v; want %d deliveries", ids(got), count)
	}
	return got
}

// nothing fails the test if something is received.
func nothing(t *testing.T, sub *subscription, lanes ...string) {
	t.Helper()
	if got := receive(t, sub, 1, 150*time.Millisecond, lanes...); len(got) > 0 {
		t.Fatalf("received %v; want nothing", ids(got))
	}
}

func ids(list []provider.Delivery) []string {
	all := []string{}
	for _, d := range list {
		all = append(all, d.Job().ID)
	}
	return all
}

// ack acknowledges deliveries.
func ack(t *testing.T, list ...provider.Delivery) {
	t.Helper()
	for _, d := range list {
		if err := d.Ack(t.Context(), nil); err != nil {
			t.Fatalf("acknowledging %s: %v", d.Job().ID, err)
		}
	}
}

// promoteWhile promotes the provider's own delays until the test ends.
func promoteWhile(t *testing.T, d provider.Delays, publish provider.Publish) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Promote(ctx, publish) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("promoting: %v", err)
		}
	})
}

// wantStats compares a queue's numbers: depth, in flight, held, dead.
func wantStats(t *testing.T, s *store, queue string, want ...int64) {
	t.Helper()
	q, err := s.provider.Stats.Queue(t.Context(), queue)
	if err != nil {
		t.Fatalf("stats of %s: %v", queue, err)
	}
	var got []int64
	for _, m := range []provider.Measure[int64]{q.Depth, q.InFlight, q.Held, q.Dead} {
		n, _ := m.Get()
		got = append(got, n)
	}
	if !slices.Equal(got, want) {
		t.Errorf("depth, in flight, held, dead of %s are %v; want %v", queue, got, want)
	}
}

func TestJobComesBackAsItWasPublished(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{})
	sub := subscribe(t, s)
	sent := job("a", keyed("k"), deduped("d", time.Hour), func(j *provider.Job) {
		j.Headers = map[string]string{"h": "v"}
		j.Format = provider.Format
	})
	publish(t, s, sent)
	got := mustReceive(t, sub, 1)[0]
	if diff := cmp.Diff(sent, *got.Job(), cmp.AllowUnexported(provider.Job{})); diff != "" {
		t.Errorf("the job changed (-sent +received):\n%s", diff)
	}
	wantStats(t, s, "q", 0, 1, 0, 0)
	ack(t, got)
	wantStats(t, s, "q", 0, 0, 0, 0)
	nothing(t, sub)
}

func TestQueueKeepsItsOrder(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{})
	sub := subscribe(t, s)
	var want []string
	var jobs []provider.Job
	for i := range 1500 {
		id := fmt.Sprint(i)
		want, jobs = append(want, id), append(jobs, job(id))
	}
	publish(t, s, jobs...)
	got := mustReceive(t, sub, len(jobs))
	if diff := cmp.Diff(want, ids(got)); diff != "" {
		t.Errorf("order (-published +received):\n%s", diff)
	}
}

// seenEvents are the events of a store.
type seenEvents struct {
	mu   sync.Mutex
	list []provider.Event
}

func observe(s *store) *seenEvents {
	e := new(seenEvents)
	s.provider.Events.Observe(func(ev provider.Event) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.list = append(e.list, ev)
	})
	return e
}

func (e *seenEvents) kinds() []provider.Kind {
	e.mu.Lock()
	defer e.mu.Unlock()
	var kinds []provider.Kind
	for _, ev := range e.list {
		kinds = append(kinds, ev.Kind)
	}
	return kinds
}

// waitFor waits until something is so.
func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(time.Minute); !so(); <-again.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// waitForLapse waits until all leases have ended.
func waitForLapse(t *testing.T, s *store) {
	t.Helper()
	waitFor(t, "the leases to end", func() bool {
		var lapsed bool
		_, err := s.readRow(t.Context(), "select max(lease) < ? from running", []any{s.in.now()}, &lapsed)
		return err == nil && lapsed
	})
}

// drain works off a queue, and returns how often each id came, until nothing has
// come for a while.
func drain(t *testing.T, s *store, queue string, quiet time.Duration) map[string]int {
	t.Helper()
	sub := subscribeFor(t, s, testLease, queue)
	seen := map[string]int{}
	for {
		got := receive(t, sub, 1, quiet, queue)
		if len(got) == 0 {
			return seen
		}
		seen[got[0].Job().ID]++
		ack(t, got...)
	}
}
