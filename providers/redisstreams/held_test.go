package redisstreams

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func holds(t *testing.T, d provider.Delays, list ...provider.Job) {
	t.Helper()
	for _, r := range d.Hold(t.Context(), list) {
		if r.Outcome != provider.OutcomeStored {
			t.Fatalf("hold %s: %s, %v", r.ID, r.Outcome, r.Err)
		}
	}
}

// TestReservationsOfAKeyTakeTurns walks through the life of held jobs of one ordering
// key: one at a time, in the order in which they are due, whoever is begun with first.
func TestReservationsOfAKeyTakeTurns(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{PromotionLease: time.Hour})
	lent, _ := s.provider.Lend("b")
	d := lent.(*delays)
	reserve := func(want ...string) reservation {
		t.Helper()
		r, odd, err := d.reserve(t.Context(), []string{"q"})
		for err == nil && len(want) > 0 && len(r.jobs) == 0 && t.Context().Err() == nil {
			r, odd, err = d.reserve(t.Context(), []string{"q"}) // due are they with the next millisecond
		}
		if err != nil || len(odd) > 0 {
			t.Fatal(err, odd)
		}
		var got []string
		for _, j := range r.jobs {
			got = append(got, j.ID)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Fatalf("reserved %q; want %q", got, want)
		}
		return r
	}
	conclude := func(r reservation, again string) {
		t.Helper()
		for i := range r.copies {
			r.copies[i].again = again
		}
		if err := d.conclude(t.Context(), r.token, r.copies); err != nil {
			t.Fatal(err)
		}
	}
	count := func(want int64) {
		t.Helper()
		if n, err := d.Held(t.Context(), "q"); err != nil || n != provider.Measured(want) {
			t.Errorf("held: %v, %v; want %d", n, err, want)
		}
	}
	holds(t, d, job("a", keyed("k")), job("b", keyed("k")), job("c", keyed("k")), job("x"), job("other", keyed("l")))
	count(5)
	first := reserve("a", "other", "x")
	reserve() // b and c wait behind a
	conclude(first, "")
	count(2)
	second := reserve("b")
	conclude(second, "0") // refused: it is tried again, and still the first
	second = reserve("b")
	holds(t, d, job("early", keyed("k"))) // due now, but b has been begun with
	conclude(second, "0")
	second = reserve("b")
	conclude(second, "")
	third := reserve("c") // which was held before early
	anew := job("c", keyed("k"), in(time.Hour))
	holds(t, d, anew) // c is held anew meanwhile
	conclude(third, "")
	count(2)
	conclude(reserve("early"), "")
	count(1)
	if cancelled, err := d.Cancel(t.Context(), "c"); err != nil || len(cancelled) != 1 {
		t.Errorf("cancel: %v, %v", cancelled, err)
	}
	count(0)
	if left := s.admin(t).Keys(t.Context(), s.keys.within(d.scope, "q")+"*").Val(); len(left) != 1 || !strings.HasSuffix(left[0], ":seq") {
		t.Errorf("keys that are left of a scope in which nothing is held: %q; want the sequence alone", left)
	}
}

// TestACancelledFirstOfAKeyLetsTheNextGo.
func TestACancelledFirstOfAKeyLetsTheNextGo(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	d, _ := s.provider.Lend("b")
	holds(t, d, job("a", keyed("k"), in(time.Hour)), job("b", keyed("k"), in(2*time.Hour)), job("c", keyed("k")))
	got := make(chan string, 3)
	promotes(t, d, func(_ context.Context, list []provider.Job) []provider.Stored {
		stored := make([]provider.Stored, len(list))
		for i, j := range list {
			got <- j.ID
			stored[i] = provider.Stored{ID: j.ID, Outcome: provider.OutcomeStored}
		}
		return stored
	})
	if id := <-got; id != "c" {
		t.Errorf("%s was promoted; want c, the only one that is due", id)
	}
	for _, id := range []string{"a", "b"} {
		if cancelled, err := d.Cancel(t.Context(), id); err != nil || len(cancelled) != 1 {
			t.Errorf("cancel %s: %v, %v", id, cancelled, err)
		}
	}
}

// TestCancelKeepsWhatHasStarted: a job that waits for a retry has run; its copy that
// never did is cancelled.
func TestCancelKeepsWhatHasStarted(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	fresh := job("a", in(time.Hour))
	crashed := fresh
	crashed.Counters.Crashes, crashed.Counters.Parks = 1, 1
	failed := fresh.After(provider.Again{Why: provider.FailedAgain, After: time.Hour})
	parked := fresh.After(provider.Again{Why: provider.ParkedAgain, After: time.Hour})
	parked.Counters.Parks = 7
	holds(t, s.provider.Delays, fresh, crashed, failed, parked)
	cancelled, err := s.provider.Delays.Cancel(t.Context(), "a")
	if err != nil || len(cancelled) != 2 {
		t.Fatalf("cancelled: %+v, %v; want the two that never started", cancelled, err)
	}
	for _, j := range cancelled {
		if j.Started() {
			t.Errorf("%+v had started", j.Counters)
		}
	}
	if n, _ := s.provider.Delays.Held(t.Context(), "q"); n != provider.Measured[int64](2) {
		t.Errorf("%v are held; want 2", n)
	}
}

// TestRetriesComeInTime looks at how late jobs are, under load and in an idle process
// that another process holds jobs for.
func TestRetriesComeInTime(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	promotes(t, s.provider.Delays, nil)
	sub := s.worker(t, time.Minute, "q")
	var mu sync.Mutex
	due := make(map[string]time.Time)
	const n = 200
	for i := range n {
		delay := time.Duration(200+i*5) * time.Millisecond
		id := fmt.Sprint(i)
		mu.Lock()
		due[id] = time.Now().Add(delay)
		mu.Unlock()
		s.stores(t, job(id, in(delay)))
	}
	latest := time.Duration(0)
	for range n {
		d := sub.takes(t, 1)[0]
		late := time.Since(due[d.Job().ID])
		if late < -finest {
			t.Errorf("%s is %v early", d.Job().ID, -late)
		}
		latest = max(latest, late)
		ack(t, d)
	}
	t.Logf("the latest of %d jobs that this process held came %v after its time", n, latest)
	beside := openStore(t, Config{URL: s.cfg.URL, Namespace: s.cfg.Namespace})
	for range 3 {
		began := time.Now()
		holds(t, beside.provider.Delays, job("beside", in(100*time.Millisecond)))
		ack(t, sub.takes(t, 1)...)
		late := time.Since(began) - 100*time.Millisecond
		t.Logf("a job that another process held came %v after its time", late)
		if late > 2*time.Second {
			t.Errorf("it came %v after its time", late)
		}
	}
}

// TestEachHeldJobGoesToItsQueue, whatever other queues have waiting, and whoever
// promotes: no queue is lost, no option of a job either.
func TestEachHeldJobGoesToItsQueue(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	const queues = 2*mostQueues + 5 // more than one step takes
	for i := range queues {
		j := job(fmt.Sprint(i), onQueue(fmt.Sprint("queue ", i)), in(time.Millisecond))
		j.Overrides = provider.Overrides{Timeout: time.Second, MaxAttempts: 3, BackoffBase: time.Second, BackoffCap: time.Minute}
		s.stores(t, j)
	}
	promotes(t, s.provider.Delays, nil)
	for i := range queues {
		d := s.worker(t, time.Minute, fmt.Sprint("queue ", i)).takes(t, 1)[0]
		if d.Job().ID != fmt.Sprint(i) || d.Job().Overrides.MaxAttempts != 3 || d.Job().Overrides.BackoffCap != time.Minute {
			t.Errorf("queue %d gave %s with %+v", i, d.Job().ID, d.Job().Overrides)
		}
		ack(t, d)
	}
}

// TestAnOrderingKeyIsRefused wherever a job could come in with one.
func TestAnOrderingKeyIsRefused(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	j := job("a", keyed("k"))
	for what, r := range map[string]provider.Stored{
		"publish": s.Publish(t.Context(), []provider.Job{j}, provider.PublishOptions{})[0],
		"hold":    s.provider.Delays.Hold(t.Context(), []provider.Job{j})[0],
	} {
		if r.Outcome != provider.OutcomeRefused || r.Err == nil || !strings.Contains(r.Err.Error(), "ordering key") {
			t.Errorf("%s: %s, %v; want it refused for its ordering key", what, r.Outcome, r.Err)
		}
	}
	s.stores(t, job("parent"))
	d := s.worker(t, time.Minute, "q").takes(t, 1)[0]
	if err := d.Ack(t.Context(), []provider.Job{j}); err == nil || !strings.Contains(err.Error(), "ordering key") {
		t.Errorf("ack with such a next job: %v", err)
	}
	ack(t, d)
}
