package backstage_test

import (
	"context"
	"slices"
	"testing"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// failOnce makes the first settlement of task a fail as lost.
func failOnce(r *rig, stored provider.Outcome, do bool) {
	var n counter
	r.hooks.settle = func(_ string, d provider.Delivery, settle func() error) error {
		if d.Job().Task != "a" || n.add() > 1 {
			return settle()
		}
		if do {
			_ = settle()
		}
		return &provider.LostError{Stored: stored}
	}
}

// TestRedeliveryAfterALostSettlement takes what its run came to in this process,
// and stores the next jobs that may be missing.
func TestRedeliveryAfterALostSettlement(t *testing.T) {
	for _, row := range []struct {
		stored   provider.Outcome
		children int
	}{{provider.OutcomeStored, 0}, {provider.OutcomeRefused, 1}, {provider.OutcomeUnknown, 1}} {
		inBubbleSub(t, row.stored.String(), func(r *rig) {
			failOnce(r, row.stored, false)
			ran := newLedger()
			r.start(backstage.WorkerConfig{}, chain("a", func(_ context.Context, _ string, next *backstage.Next) error {
				ran.write("a")
				add(next, task("b"), "child")
				return nil
			}), handle("b", func(context.Context, string) error { ran.write("b"); return nil }))
			id := r.enqueue(job(task("a"), "")).ID
			pass(10 * time.Minute)
			want := []string{"a", "b"}[:1+row.children]
			if !slices.Equal(ran.read(), want) {
				r.Errorf("runs %v, want %v", ran.read(), want)
			}
			last := "acked"
			if row.children > 0 {
				last = "acked with 1 next"
			}
			r.wantLife(id, "enqueued: stored", "run 1", "done", "lease lost", last)
			r.wantNothingLeft()
		})
	}
}

// TestRetryThatWasLost: if its copy is stored, that runs, and the redelivery does
// not; if not, the redelivery runs.
func TestRetryThatWasLost(t *testing.T) {
	for _, stored := range []bool{true, false} {
		name := map[bool]string{true: "stored", false: "not stored"}[stored]
		inBubbleSub(t, name, func(r *rig) {
			outcome := provider.OutcomeRefused
			if stored {
				outcome = provider.OutcomeStored
			}
			failOnce(r, outcome, stored)
			attempts := newLedger()
			r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
				info, _ := backstage.InfoFrom(ctx)
				attempts.write(string(rune('0' + info.Attempt)))
				if attempts.count() == 1 {
					return backstage.RetryAfter(errBoom, time.Second)
				}
				return nil
			}))
			r.enqueue(job(task("a"), ""))
			pass(10 * time.Minute)
			want := []string{"1", "2"}
			if !stored {
				want = []string{"1", "1"} // the failure is not on record
			}
			if !slices.Equal(attempts.read(), want) {
				r.Errorf("attempts %v, want %v", attempts.read(), want)
			}
			r.wantNothingLeft()
		})
	}
}

// TestAnotherEnqueueOfTheIDIsNotSwallowed by what is remembered of the first.
func TestAnotherEnqueueOfTheIDIsNotSwallowed(t *testing.T) {
	inBubble(t, func(r *rig) {
		failOnce(r, provider.OutcomeRefused, false)
		ran := newLedger()
		r.start(backstage.WorkerConfig{}, handle("a", func(_ context.Context, in string) error { ran.write(in); return nil }))
		r.enqueue(job(task("a"), "first", backstage.WithID("id")))
		pass(time.Second)
		r.enqueue(job(task("a"), "second", backstage.WithID("id")))
		pass(10 * time.Minute)
		if want := []string{"first", "second"}; !slices.Equal(ran.read(), want) {
			r.Errorf("runs %v, want %v", ran.read(), want)
		}
		r.wantNothingLeft()
	})
}

// TestUnconfirmedSettlementsAreRemembered: where an ack is only sent, and a crash of
// the broker brings the job back, this process does not run it again.
func TestUnconfirmedSettlementsAreRemembered(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.hooks.facts = func(f *provider.JobFacts) { f.Confirmed = false }
		var n, runs counter
		r.hooks.settle = func(_ string, _ provider.Delivery, do func() error) error {
			if n.add() == 1 {
				return nil // sent, and lost
			}
			return do()
		}
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { runs.add(); return nil }))
		r.enqueue(job(task("a"), ""))
		pass(50 * time.Second)
		if runs.get() != 1 {
			r.Errorf("%d runs, want 1: the redelivery is settled by memory", runs.get())
		}
		r.wantNothingLeft()
	})
}

// TestReplayIsNotSwallowed by what is remembered of the run before it.
func TestReplayIsNotSwallowed(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.hooks.facts = func(f *provider.JobFacts) { f.Confirmed = false }
		var runs counter
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error {
			if runs.add() == 1 {
				return backstage.Permanent(errBoom)
			}
			return nil
		}))
		r.enqueue(job(task("a"), ""))
		pass(time.Second)
		if _, err := backstage.Replay(r.Context(), r.p, r.onlyDead().Address); err != nil {
			r.Fatal(err)
		}
		pass(time.Second)
		if runs.get() != 2 {
			r.Errorf("%d runs, want 2: a replay runs at once", runs.get())
		}
		r.wantNothingLeft()
	})
}
