package backstage_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

func ordered(t *backstage.Task[*text]) { t.OrderingKey = keyOf }

// TestOrderingKey: one at a time and in order, whatever the task, while the others
// of the key wait for a retry, and a dead-lettered one frees it.
func TestOrderingKey(t *testing.T) {
	inBubble(t, func(r *rig) {
		runs := newLedger()
		var live counter
		run := func(ctx context.Context, key string) error {
			if live.add() > 1 {
				r.Error("two jobs of one key run at once")
			}
			defer live.n.Add(-1)
			info, _ := backstage.InfoFrom(ctx)
			time.Sleep(time.Second)
			runs.write(fmt.Sprint(info.Headers["n"], ".", info.Attempt))
			switch {
			case info.OrderingKey != "k/x":
				r.Errorf("ordering key %q, want k/x", info.OrderingKey)
			case info.Headers["n"] == "1" && info.Attempt < 3:
				return backstage.RetryAfter(errBoom, time.Minute)
			case info.Headers["n"] == "2":
				return backstage.Permanent(errBoom)
			case info.Headers["n"] == "3" && info.Snoozes == 0:
				return backstage.Snooze(time.Minute)
			}
			return nil
		}
		r.start(backstage.WorkerConfig{}, handle("a", run), handle("b", run))
		for n := range 5 {
			r.enqueue(job(task(string("ab"[n%2]), ordered), "x", backstage.Header("n", fmt.Sprint(n))))
		}
		pass(time.Hour)
		if want := []string{"0.1", "1.1", "1.2", "1.3", "2.1", "3.1", "3.1", "4.1"}; !slices.Equal(runs.read(), want) {
			r.Errorf("runs %v, want %v", runs.read(), want)
		}
	})
}

// TestOtherKeysGoOn while one waits for its retry.
func TestOtherKeysGoOn(t *testing.T) {
	inBubble(t, func(r *rig) {
		runs := newLedger()
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, key string) error {
			info, _ := backstage.InfoFrom(ctx)
			runs.write(key)
			if key == "x" && info.Attempt == 1 {
				return backstage.RetryAfter(errBoom, time.Hour)
			}
			return nil
		}))
		r.enqueue(job(task("a", ordered), "x"))
		pass(time.Second)
		r.enqueue(job(task("a", ordered), "y"))
		r.enqueue(job(task("a"), "none"))
		pass(time.Second)
		if got := runs.read(); len(got) != 3 {
			r.Errorf("runs %v beside a key that waits, want those of all others", got)
		}
	})
}

// TestUnorderedProviderRefusesKeys by name.
func TestUnorderedProviderRefusesKeys(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.hooks.facts = func(f *provider.JobFacts) { f.Ordered = false }
		if _, err := backstage.Enqueue(r.Context(), r.client, job(task("a", ordered), "x")); err == nil {
			r.Error("a job with an ordering key was stored where there is no order")
		}
		// A retry that a lender holds loses its place: where the provider cannot retry
		// ordered jobs by itself, it keeps no order with lent Delays.
		for retries, ok := range map[provider.Retries]bool{provider.RetriesNone: false, provider.RetriesOrdered: true, provider.RetriesAll: true} {
			r.hooks.facts = func(f *provider.JobFacts) { f.Retries = retries }
			lend(r)
			if err := r.client.Check(task("a", ordered).Needs()); (err == nil) != ok {
				r.Errorf("order with lent Delays and retries %d: %v, want ok %t", retries, err, ok)
			}
		}
	})
}

// TestJobsWhoseKeyIsEmptyAreInOrderToo: a template of fields that may be empty has
// one key for all jobs in which they are, and no value makes that key.
func TestJobsWhoseKeyIsEmptyAreInOrderToo(t *testing.T) {
	t.Parallel()
	optional := task("a", func(t *backstage.Task[*text]) {
		t.OrderingKey = func(in *text) (string, error) {
			return backstage.JoinKey(backstage.KeyField("value", in.GetValue(), true))
		}
	})
	empty := job(optional, "").OrderingKey()
	if empty == "" || empty != job(optional, "").OrderingKey() {
		t.Errorf("the key of an empty field is %q, want one that orders", empty)
	}
	for _, value := range []string{"%", "a", " "} {
		if key := job(optional, value).OrderingKey(); key == empty {
			t.Errorf("%q has the key of an empty field, %q", value, key)
		}
	}
	if key := job(task("a"), "").OrderingKey(); key != "" {
		t.Errorf("a task without ordering key has %q", key)
	}
}

// TestOrderThroughLentClaims keeps the order of a key where some of its jobs need a claim
// of a lender first, and others do not.
func TestOrderThroughLentClaims(t *testing.T) {
	ordered := func(t *backstage.Task[*text]) { t.OrderingKey = func(*text) (string, error) { return "k", nil } }
	claimed, plain := task("a", ordered, window(time.Hour)), task("b", ordered)
	for name, send := range map[string]func(r *rig){
		"behind a pending claim": func(r *rig) {
			if _, err := r.p.Claims.Claim(r.Context(), []provider.Claim{{Key: "a:1", Owner: "other", For: 2 * time.Second}}); err != nil {
				r.Fatal(err)
			}
			if _, err := r.client.Enqueue(r.Context(), job(claimed, "1"), job(plain, "2"), job(claimed, "3")); err != nil {
				r.Fatal(err)
			}
		},
		"of one call": func(r *rig) {
			if _, err := r.client.Enqueue(r.Context(), job(claimed, "1"), job(plain, "2"), job(claimed, "3")); err != nil {
				r.Fatal(err)
			}
		},
		"of next jobs": func(r *rig) { r.enqueue(job(task("p"), "")) },
	} {
		inBubbleSub(t, name, func(r *rig) {
			_, r.p.Claims = r.open(memory.NewStore()).Lend("rig")
			ran := newLedger()
			note := func(_ context.Context, in string) error { ran.write(in); return nil }
			r.start(backstage.WorkerConfig{}, handle("a", note), handle("b", note), chain("p", func(_ context.Context, _ string, next *backstage.Next) error {
				add(next, plain, "1")
				add(next, claimed, "2")
				add(next, plain, "3")
				return nil
			}))
			send(r)
			pass(time.Minute)
			if want := []string{"1", "2", "3"}; !slices.Equal(ran.read(), want) {
				r.Errorf("ran %v, want %v", ran.read(), want)
			}
		})
	}
}
