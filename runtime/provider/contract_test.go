package provider

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestEventsReachAllWhoObserve(t *testing.T) {
	var e Events
	e.Emit(Event{Kind: Ghost}) // nobody observes
	var first, second []Kind
	cancel := e.Observe(func(ev Event) { first = append(first, ev.Kind) })
	e.Observe(func(ev Event) {
		second = append(second, ev.Kind)
		if ev.Kind == Blocked {
			e.Observe(func(Event) {})() // from inside
		}
	})
	e.Emit(Event{Kind: Blocked})
	cancel()
	cancel()
	e.Emit(Event{Kind: Unblocked})
	if len(first) != 1 || len(second) != 2 {
		t.Errorf("the first saw %v, the second %v", first, second)
	}
}

func TestEarlyEventsReachTheFirstWhoObserves(t *testing.T) {
	var e Events
	e.EmitEarly(Event{Kind: Degraded})
	var first, second []Kind
	e.Observe(func(ev Event) { first = append(first, ev.Kind) })()
	e.Observe(func(ev Event) { second = append(second, ev.Kind) })
	if len(first) != 1 || first[0] != Degraded || len(second) != 0 {
		t.Errorf("the first saw %v, the second %v; want that only the first saw it", first, second)
	}
}

func TestEventsFromManySides(t *testing.T) {
	var e Events
	var mu sync.Mutex
	seen := 0
	e.Observe(func(Event) {
		mu.Lock()
		defer mu.Unlock()
		seen++
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				e.Emit(Event{})
				e.Observe(func(Event) {})()
			}
		})
	}
	wg.Wait()
	if seen != 800 {
		t.Errorf("%d of 800 events were seen", seen)
	}
}

func TestMeasure(t *testing.T) {
	var unknown Measure[int64]
	if _, known := unknown.Get(); known || unknown.String() != "unknown" {
		t.Errorf("the zero value is %v", unknown)
	}
	zero := Measured(time.Duration(0))
	if n, known := zero.Get(); n != 0 || !known || zero.String() != "0s" {
		t.Errorf("a measured zero is %v", zero)
	}
	b, err := json.Marshal(QueueStats{Depth: Measured[int64](0), OldestReady: Measured(2 * time.Second)})
	want := `{"depth":0,"oldest_ready":2000000000,"in_flight":null,"held":null,"dead":null,"oldest_dead":null}`
	if err != nil || string(b) != want {
		t.Errorf("as JSON: %s, %v; want %s", b, err, want)
	}
}

func TestDeadFilter(t *testing.T) {
	at := time.Unix(100, 0)
	l := DeadLetter{Queue: "q", At: at, Failure: Failure{Class: ClassFailed}, Job: Job{ID: "job-1", Task: "t"}}
	for name, c := range map[string]struct {
		f    DeadFilter
		want bool
	}{
		"all":           {DeadFilter{}, true},
		"limit":         {DeadFilter{Limit: 1}, true},
		"queue":         {DeadFilter{Queue: "q"}, true},
		"other queue":   {DeadFilter{Queue: "x"}, false},
		"task":          {DeadFilter{Task: "t"}, true},
		"other task":    {DeadFilter{Task: "x"}, false},
		"class":         {DeadFilter{Class: ClassFailed}, true},
		"other class":   {DeadFilter{Class: ClassPanic}, false},
		"job":           {DeadFilter{JobID: "job-1"}, true},
		"other job":     {DeadFilter{JobID: "x"}, false},
		"since then":    {DeadFilter{Since: at}, true},
		"since later":   {DeadFilter{Since: at.Add(1)}, false},
		"until then":    {DeadFilter{Until: at}, false},
		"until later":   {DeadFilter{Until: at.Add(1)}, true},
		"one of two":    {DeadFilter{Queue: "q", Task: "x"}, false},
		"both are fine": {DeadFilter{Queue: "q", Task: "t"}, true},
	} {
		if got := c.f.Match(&l); got != c.want {
			t.Errorf("%s: %v; want %v", name, got, c.want)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	lost := error(&LostError{Stored: OutcomeStored})
	if !errors.Is(lost, ErrLeaseLost) || errors.Is(lost, ErrSettled) || !strings.Contains(lost.Error(), "stored") {
		t.Errorf("LostError: %v", lost)
	}
	setup := &SetupError{Provider: "p", Problem: "two lanes and one slot", Remedy: "add a slot"}
	if got, want := setup.Error(), "provider p: two lanes and one slot; add a slot"; got != want {
		t.Errorf("SetupError: %q; want %q", got, want)
	}
}

func TestOutcomeInAWord(t *testing.T) {
	for o, want := range map[Outcome]string{
		OutcomeUnknown: "unknown", OutcomeStored: "stored", OutcomeDuplicate: "duplicate", OutcomeRefused: "refused",
		-1: "outcome -1", 9: "outcome 9",
	} {
		if got := o.String(); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
