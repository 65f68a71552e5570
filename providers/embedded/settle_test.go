package embedded

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// togetherIn has calls wait for the writer until there are count of them, so that
// they share a transaction.
func togetherIn(t *testing.T, s *store, armed *atomic.Bool, hold chan<- struct{}, entered <-chan struct{}, calls ...func() error) []error {
	t.Helper()
	armed.Store(true)
	go s.Publish(t.Context(), []provider.Job{job("first", onQueue("other"))}, provider.PublishOptions{})
	<-entered
	results := make([]error, len(calls))
	ended := make(chan struct{})
	for i, call := range calls {
		go func() {
			results[i] = call()
			ended <- struct{}{}
		}()
		waitFor(t, "the call to wait", func() bool {
			s.writer.mu.Lock()
			defer s.writer.mu.Unlock()
			return len(s.writer.waiting) == i+1
		})
	}
	close(hold)
	for range calls {
		<-ended
	}
	return results
}

// eitherWay runs a test twice: while the writer is held at the returned point, what is
// called waits for the next transaction, or joins the one under way.
func eitherWay(t *testing.T, name string, test func(t *testing.T, point string)) {
	for way, point := range map[string]string{"next": "applied", "joined": "begun"} {
		t.Run(name+" "+way, func(t *testing.T) {
			t.Parallel()
			test(t, point)
		})
	}
}

// TestLatecomersShareATransaction settles and stores while a transaction is under way.
func TestLatecomersShareATransaction(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	var commits atomic.Int64
	hold, entered := make(chan struct{}), make(chan struct{}, 1)
	hook := holdAt("begun", hold, entered)
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Config{}, internals{hook: func(point string) {
		if armed.Load() {
			hook(point)
		}
		if point == "committed" {
			commits.Add(1)
		}
	}})
	publish(t, s, job("a"))
	got := mustReceive(t, subscribe(t, s), 1)
	before := commits.Load()
	for i, err := range togetherIn(t, s, &armed, hold, entered,
		func() error { return got[0].Ack(t.Context(), nil) },
		func() error { publish(t, s, job("b")); return nil },
	) {
		if err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if n := commits.Load() - before; n != 1 {
		t.Errorf("%d transactions for three calls; want one", n)
	}
	wantStats(t, s, "q", 1, 0, 0, 0)
}

// TestSettlementsOfOneTransaction settles jobs with consecutive numbers together:
// all of them, and such that some were lost or are settled twice.
func TestSettlementsOfOneTransaction(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost  []int // whose lease ended, and whom another worker has
		order []int // in which they are settled
		want  []error
	}{
		"all":           {order: []int{0, 1, 2, 3}, want: make([]error, 4)},
		"out of order":  {order: []int{3, 0, 2}, want: make([]error, 3)},
		"one was lost":  {lost: []int{1}, order: []int{0, 1, 2, 3}, want: []error{nil, provider.ErrLeaseLost, nil, nil}},
		"all were lost": {lost: []int{0, 1, 2, 3}, order: []int{2, 1, 0}, want: []error{provider.ErrLeaseLost, provider.ErrLeaseLost, provider.ErrLeaseLost}},
		"one twice":     {order: []int{1, 0, 1, 2}, want: []error{nil, nil, provider.ErrSettled, nil}},
		"one lost, and twice": {lost: []int{1}, order: []int{1, 0, 1, 2},
			want: []error{provider.ErrLeaseLost, nil, provider.ErrLeaseLost, nil}},
	} {
		eitherWay(t, name, func(t *testing.T, point string) {
			var armed atomic.Bool
			hold, entered := make(chan struct{}), make(chan struct{}, 1)
			hook := holdAt(point, hold, entered)
			s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Config{}, internals{hook: func(point string) {
				if armed.Load() {
					hook(point)
				}
			}})
			publish(t, s, job("0"), job("1"), job("2"), job("3"))
			got := mustReceive(t, subscribeFor(t, s, time.Hour, "q"), 4)
			for _, i := range c.lost {
				err := s.do(t.Context(), func(tx *transaction) error {
					tx.exec("update running set run = ? where n = ?", tx.next(), got[i].(*delivery).n)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			calls := make([]func() error, len(c.order))
			for i, which := range c.order {
				calls[i] = func() error { return got[which].Ack(t.Context(), []provider.Job{job(fmt.Sprint("next of ", which))}) }
			}
			var next []string
			for i, err := range togetherIn(t, s, &armed, hold, entered, calls...) {
				if !errors.Is(err, c.want[i]) {
					t.Errorf("settling %d: %v; want %v", c.order[i], err, c.want[i])
				}
				if err == nil {
					next = append(next, fmt.Sprint("next of ", c.order[i]))
				}
			}
			wantStats(t, s, "q", int64(len(next)), int64(4-len(next)), 0, 0)
			sub := subscribe(t, s)
			got = nil
			if len(next) > 0 {
				got = mustReceive(t, sub, len(next))
			}
			if diff := cmp.Diff(next, ids(got), cmpopts.SortSlices(strings.Compare), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("next jobs of what was settled (-want +received):\n%s", diff)
			}
			nothing(t, sub)
		})
	}
}

// TestWhoWaitsForRoomIsNotOvertaken has room come while a transaction is under way, and
// with it somebody else who wants it.
func TestWhoWaitsForRoomIsNotOvertaken(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	hold, entered := make(chan struct{}), make(chan struct{}, 1)
	hook := holdAt("begun", hold, entered)
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Config{Bounds: map[string]int{"q": 1}}, internals{hook: func(point string) {
		if armed.Load() {
			hook(point)
		}
	}})
	publish(t, s, job("a"))
	sub := subscribe(t, s)
	a := mustReceive(t, sub, 1)[0]
	stored := make(chan string, 2)
	send := func(id string) {
		if r := s.Publish(t.Context(), []provider.Job{job(id)}, provider.PublishOptions{})[0]; r.Err == nil {
			stored <- id
		}
	}
	armed.Store(true)
	go send("first")
	<-entered // it is in a transaction, and finds no room
	go func() { _ = a.Ack(t.Context(), nil) }()
	go send("second")
	waitFor(t, "both to wait", func() bool {
		s.writer.mu.Lock()
		defer s.writer.mu.Unlock()
		return len(s.writer.waiting) == 2
	})
	close(hold)
	if id := <-stored; id != "first" {
		t.Errorf("%s has the room; want first, which waited longer", id)
	}
	ack(t, mustReceive(t, sub, 1)...)
	<-stored
}

// TestADuplicateNeedsNoRoom answers at once in a queue that is full.
func TestADuplicateNeedsNoRoom(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{Bounds: map[string]int{"q": 1}})
	publish(t, s, job("a", deduped("key", time.Hour)))
	if r := s.Publish(t.Context(), []provider.Job{job("b", deduped("key", time.Hour))}, provider.PublishOptions{})[0]; r.Outcome != provider.OutcomeDuplicate || r.Holder != "a" {
		t.Errorf("a duplicate for a full queue: %+v; want that a holds its key", r)
	}
}
