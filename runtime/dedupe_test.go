package backstage_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

func window(d time.Duration) func(*backstage.Task[*text]) {
	return func(t *backstage.Task[*text]) { t.Dedupe, t.DedupeFor = keyOf, d }
}

func untilDone(t *backstage.Task[*text]) { t.Dedupe, t.DedupeUntilDone = keyOf, true }

// TestDedupeWindow holds from enqueue, whatever becomes of the job, and is scoped
// by the task.
func TestDedupeWindow(t *testing.T) {
	for _, length := range []time.Duration{10 * time.Second, time.Hour} {
		t.Run(length.String(), func(t *testing.T) {
			inRounds(t, func(r *rig) {
				var runs counter
				r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { runs.add(); return nil }), handle("b", nothing))
				a, b := task("a", window(length)), task("b", window(length))
				first := r.enqueue(job(a, "x"))
				pass(length / 2)
				merged := job(a, "x")
				if got := r.enqueue(merged); !got.Duplicate || got.ID != first.ID || got.Outcome != backstage.Duplicate {
					r.Errorf("the same key in the window: %+v, want a duplicate of %s", got, first.ID)
				}
				if r.enqueue(job(a, "y")).Duplicate || r.enqueue(job(b, "x")).Duplicate {
					r.Error("another key, or the key of another task, is a duplicate")
				}
				pass(length/2 + time.Second)
				if r.enqueue(job(a, "x")).Duplicate {
					r.Errorf("a duplicate %v after the first", length+time.Second)
				}
				pass(time.Second)
				if runs.get() != 3 {
					r.Errorf("%d runs of a, want 3", runs.get())
				}
				r.wantLife(merged.ID(), "enqueued: duplicate")
				r.wantNothingLeft()
			})
		})
	}
}

// TestDedupeUntilDone holds through delay, run, retries and snoozes, and ends with
// each kind of outcome.
func TestDedupeUntilDone(t *testing.T) {
	for _, row := range []struct {
		name string
		ends func() error
	}{
		{"done", func() error { return nil }},
		{"skipped", func() error { return backstage.Skip("gone") }},
		{"dead", func() error { return backstage.Permanent(errBoom) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			inRounds(t, func(r *rig) {
				var runs counter
				a := task("a", untilDone)
				r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error {
					switch runs.add() {
					case 1:
						return backstage.RetryAfter(errBoom, 24*time.Hour)
					case 2:
						return backstage.Snooze(24 * time.Hour)
					case 3:
						time.Sleep(30 * time.Second)
					}
					return row.ends()
				}))
				first := r.enqueue(job(a, "x", backstage.In(48*time.Hour)))
				for _, at := range []time.Duration{24 * time.Hour, 36 * time.Hour, 24 * time.Hour, 12*time.Hour + 10*time.Second} {
					pass(at)
					if got := r.enqueue(job(a, "x")); !got.Duplicate || got.ID != first.ID {
						r.Errorf("before its outcome, after %d runs: %+v, want a duplicate of %s", runs.get(), got, first.ID)
					}
				}
				pass(time.Minute)
				if runs.get() != 3 {
					r.Fatalf("%d runs, want 3", runs.get())
				}
				if r.enqueue(job(a, "x")).Duplicate {
					r.Error("after its outcome the key is still held")
				}
			})
		})
	}
}

func TestDuplicatesInOneBatch(t *testing.T) {
	inRounds(t, func(r *rig) {
		a := task("a", window(time.Hour))
		receipts, err := r.client.Enqueue(r.Context(), job(a, "x"), job(a, "x"), job(task("b"), ""), job(a, "y"), job(a, "x", backstage.In(time.Hour)))
		if err != nil {
			r.Fatal(err)
		}
		for i, want := range []bool{false, true, false, false, true} {
			if got := receipts[i]; got.Duplicate != want || want && got.ID != receipts[0].ID {
				r.Errorf("job %d: %+v, want duplicate of the first: %t", i, got, want)
			}
		}
	})
}

// TestTheSameJobAgainIsNoDuplicate: its own claim is no obstacle, or an unknown
// outcome could not be tried again.
func TestTheSameJobAgainIsNoDuplicate(t *testing.T) {
	inRounds(t, func(r *rig) {
		j := job(task("a", window(time.Hour)), "x")
		r.enqueue(j)
		if got := r.enqueue(j); got.Duplicate || got.ID != j.ID() {
			r.Errorf("the same job again: %+v, want it stored", got)
		}
	})
}

// TestClaimAfterAFailedPublish: a refused job frees its key, and one whose outcome
// is unknown keeps it for the same id.
func TestClaimAfterAFailedPublish(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.p.Delays, r.p.Claims = r.open(r.store).Lend("elsewhere")
		outcome := provider.OutcomeRefused
		r.hooks.publish = func(jobs []provider.Job, _ provider.PublishOptions, _ func() []provider.Stored) []provider.Stored {
			return []provider.Stored{{ID: jobs[0].ID, Outcome: outcome, Err: errBoom}}
		}
		a := task("a", window(time.Hour))
		if _, err := backstage.Enqueue(r.Context(), r.client, job(a, "refused")); !errors.Is(err, errBoom) {
			r.Fatalf("enqueue: %v", err)
		}
		outcome = provider.OutcomeUnknown
		unknown := job(a, "unknown")
		if got, err := backstage.Enqueue(r.Context(), r.client, unknown); err == nil || got.Outcome != backstage.Unknown || got.ID != unknown.ID() {
			r.Fatalf("enqueue: %+v, %v, want unknown", got, err)
		}
		r.hooks.publish = nil
		if r.enqueue(job(a, "refused")).Duplicate {
			r.Error("a refused job keeps its key")
		}
		ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
		defer cancel()
		got, err := backstage.Enqueue(ctx, r.client, job(a, "unknown"))
		if !errors.Is(err, backstage.ErrDedupePending) || got.Outcome != backstage.Refused {
			r.Errorf("another job while the outcome is unknown: %+v, %v; want ErrDedupePending when its context ends", got, err)
		}
		if got := r.enqueue(unknown); got.Duplicate {
			r.Errorf("the same id again: %+v, want it stored", got)
		}
		if got := r.enqueue(job(a, "unknown")); !got.Duplicate || got.ID != unknown.ID() {
			r.Errorf("another job after it is stored: %+v, want a duplicate", got)
		}
	})
}

// TestConcurrentEnqueuesOfOneKey store one job, and tell all others so.
func TestConcurrentEnqueuesOfOneKey(t *testing.T) {
	inRounds(t, func(r *rig) {
		var stored, merged atomic.Int64
		done := make(chan struct{})
		for i := range 20 {
			go func() {
				defer func() { done <- struct{}{} }()
				got, err := backstage.Enqueue(r.Context(), r.client, job(task("a", window(time.Hour)), "x", backstage.WithID(fmt.Sprint("id-", i))))
				switch {
				case err != nil:
					r.Errorf("enqueue: %v", err)
				case got.Duplicate:
					merged.Add(1)
				default:
					stored.Add(1)
				}
			}()
		}
		for range 20 {
			<-done
		}
		if stored.Load() != 1 || merged.Load() != 19 {
			r.Errorf("%d stored, %d merged; want 1 and 19", stored.Load(), merged.Load())
		}
	})
}

// TestOwnClaimsWithLentDelays: a key that holds until done is held while a lender
// has the job for its retry, although the provider has acked the run.
func TestOwnClaimsWithLentDelays(t *testing.T) {
	inBubble(t, func(r *rig) {
		claims := r.p.Claims
		lend(r)
		r.p.Claims = claims
		var runs counter
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error {
			if runs.add() == 1 {
				return backstage.RetryAfter(errBoom, time.Hour)
			}
			return nil
		}))
		a := task("a", untilDone)
		first := r.enqueue(job(a, "x", backstage.In(time.Minute)))
		for _, wait := range []time.Duration{30 * time.Second, time.Minute} {
			pass(wait)
			if got := r.enqueue(job(a, "x")); !got.Duplicate || got.ID != first.ID {
				r.Errorf("after %d runs: %+v, want a duplicate of %s", runs.get(), got, first.ID)
			}
		}
		pass(2 * time.Hour)
		if r.enqueue(job(a, "x")).Duplicate {
			r.Error("after its outcome the key is still held")
		}
	})
}

// TestUntilDoneFollowsTheTasksMaxAge, which the client does not know.
func TestUntilDoneFollowsTheTasksMaxAge(t *testing.T) {
	inRounds(t, func(r *rig) {
		const day = 24 * time.Hour
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
			if info, _ := backstage.InfoFrom(ctx); info.Attempt == 1 {
				return backstage.RetryAfter(errBoom, 30*day)
			}
			return nil
		}, backstage.Policy{MaxAge: 60 * day}))
		a := task("a", untilDone)
		first := r.enqueue(job(a, "x"))
		pass(29 * day)
		if got := r.enqueue(job(a, "x")); !got.Duplicate || got.ID != first.ID {
			r.Errorf("while the job waits for its retry: %+v, want a duplicate of %s", got, first.ID)
		}
		pass(2 * day)
		if r.enqueue(job(a, "x")).Duplicate {
			r.Error("after its outcome the key is still held")
		}
	})
}
