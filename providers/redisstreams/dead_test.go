package redisstreams

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// dies publishes jobs and dead-letters all in one step each.
func dies(t *testing.T, s *store, queue string, ids ...string) {
	t.Helper()
	var list []provider.Job
	for _, id := range ids {
		list = append(list, job(id, onQueue(queue)))
	}
	s.stores(t, list...)
	sub := s.worker(t, time.Minute, queue)
	var wg sync.WaitGroup
	for _, d := range sub.takes(t, len(ids)) {
		wg.Go(func() {
			if err := d.DeadLetter(t.Context(), failure("permanent", "why "+d.Job().ID+" died")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestListingManyQueues merges them, newest first, in pages of every size, though many
// letters died in one moment.
func TestListingManyQueues(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	total := 0
	for i := range 7 {
		var ids []string
		for j := range 5 + 30*(i%3) {
			ids = append(ids, fmt.Sprint(i, ".", j))
		}
		total += len(ids)
		dies(t, s, fmt.Sprint("queue", i%4), ids...)
	}
	var all []string
	for _, limit := range []int{1000, 1, 7, 100} {
		var got []string
		var last time.Time
		for page := ""; ; {
			letters, next, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{Limit: limit}, page)
			if err != nil || len(letters) > limit {
				t.Fatal(len(letters), err)
			}
			for _, l := range letters {
				if !last.IsZero() && l.At.After(last) {
					t.Errorf("limit %d: %s is newer than the one before it", limit, l.Address)
				}
				last = l.At
				got = append(got, l.Address)
			}
			if page = next; page == "" {
				break
			}
		}
		if all == nil {
			all = got
		}
		if len(got) != total || !slices.Equal(got, all) {
			t.Errorf("pages of %d list %d letters; want %d, in the same order", limit, len(got), total)
		}
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(all))); len(unique) != total {
		t.Errorf("%d addresses for %d letters", len(unique), total)
	}
}

// TestPagesOfAListThatChanges: what is discarded and what dies while someone turns pages
// makes none of the others vanish or come twice.
func TestPagesOfAListThatChanges(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	dies(t, s, "q", "a", "b", "c", "d", "e", "f")
	first, page, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{Limit: 2}, "")
	if err != nil || len(first) != 2 {
		t.Fatal(first, err)
	}
	if _, err := s.provider.Dead.Discard(t.Context(), first[0].Address, first[1].Address); err != nil {
		t.Fatal(err)
	}
	dies(t, s, "q", "new")
	rest, page, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{}, page)
	if err != nil || len(rest) != 4 || page != "" {
		t.Errorf("the other page has %d letters, then %q, %v; want 4 and the end", len(rest), page, err)
	}
}

// TestAddressesThatAreNone are not found, whatever they look like.
func TestAddressesThatAreNone(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	dies(t, s, "q", "a")
	for _, where := range []string{"", "@", "q", "1", "1@", "@q", "x@q", "-1@q", "01@q", "1.0@q", "1@q", "1@other", "99999999999999999999@q"} {
		if _, err := s.provider.Dead.Get(t.Context(), where); !errors.Is(err, provider.ErrNotFound) || !strings.Contains(err.Error(), where) {
			t.Errorf("get %q: %v; want it not found", where, err)
		}
		for what, r := range map[string]func() ([]provider.Stored, error){
			"replay":  func() ([]provider.Stored, error) { return s.provider.Dead.Replay(t.Context(), where) },
			"discard": func() ([]provider.Stored, error) { return s.provider.Dead.Discard(t.Context(), where) },
		} {
			stored, err := r()
			if err != nil || len(stored) != 1 || stored[0].Outcome != provider.OutcomeRefused || !errors.Is(stored[0].Err, provider.ErrNotFound) {
				t.Errorf("%s %q: %+v, %v; want it not found", what, where, stored, err)
			}
		}
	}
}

// TestALetterSaysWhy: it has the error's text, the queue, the counters and all options,
// and a replay brings them back.
func TestALetterSaysWhy(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	j := job("a", onQueue("a custom/queue: of ours"))
	j.Overrides = provider.Overrides{Timeout: time.Second, MaxAttempts: 3}
	j.Headers = map[string]string{"a": "b"}
	s.stores(t, j)
	d := s.worker(t, time.Minute, j.Queue).takes(t, 1)[0]
	if err := d.DeadLetter(t.Context(), provider.Failure{Class: "exhausted", Message: "no such card", Worker: "w", Attempt: 3, Detail: "stack"}); err != nil {
		t.Fatal(err)
	}
	letters, _, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{Queue: j.Queue}, "")
	if err != nil || len(letters) != 1 {
		t.Fatal(letters, err)
	}
	l := letters[0]
	if f := l.Failure; f.Message != "no such card" || f.Class != "exhausted" || f.Attempt != 3 || f.Worker != "w" || l.Queue != j.Queue || l.Job.Overrides != j.Overrides {
		t.Errorf("the letter is %+v", l)
	}
	if stats, _ := s.provider.Stats.Queue(t.Context(), j.Queue); stats.InFlight != provider.Measured[int64](0) || stats.Dead != provider.Measured[int64](1) {
		t.Errorf("afterwards: %+v; want one dead letter and nothing else", stats)
	}
	if r, err := s.provider.Dead.Replay(t.Context(), l.Address); err != nil || r[0].Outcome != provider.OutcomeStored || r[0].ID != "a" {
		t.Fatal(r, err)
	}
	again := s.worker(t, time.Minute, j.Queue).takes(t, 1)[0]
	if got := again.Job(); got.Overrides != j.Overrides || got.Headers["a"] != "b" || got.Counters.Failures != 0 || got.Counters.Replays != 1 || len(got.History) != 1 {
		t.Errorf("the replayed job is %+v", got)
	}
	ack(t, again)
}

// TestMaxDead refuses one letter too many, and the job is not settled.
func TestMaxDead(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{MaxDead: 2})
	dies(t, s, "q", "a", "b")
	s.stores(t, job("c"), job("d", onQueue("other")))
	d := s.worker(t, time.Minute, "q").takes(t, 1)[0]
	if err := d.DeadLetter(t.Context(), failure("permanent", "no")); !errors.Is(err, provider.ErrDeadFull) {
		t.Errorf("one too many: %v; want ErrDeadFull", err)
	}
	if err := s.worker(t, time.Minute, "other").takes(t, 1)[0].DeadLetter(t.Context(), failure("permanent", "no")); err != nil {
		t.Errorf("one of another queue: %v", err)
	}
	letters, _, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{Queue: "q"}, "")
	if err != nil || len(letters) != 2 {
		t.Fatal(letters, err)
	}
	if _, err := s.provider.Dead.Discard(t.Context(), letters[0].Address); err != nil {
		t.Fatal(err)
	}
	if err := d.DeadLetter(t.Context(), failure("permanent", "no")); err != nil {
		t.Errorf("when there is room: %v", err)
	}
}
