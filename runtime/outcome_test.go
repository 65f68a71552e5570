package backstage_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

var errBoom = errors.New("boom")

// TestFourCases is the demonstration of the first page: what works, what works at
// the third attempt, what never can, and what never does.
func TestFourCases(t *testing.T) {
	inRounds(t, func(r *rig) {
		runs := newLedger()
		r.start(backstage.WorkerConfig{}, handle("charge", func(ctx context.Context, in string) error {
			info, _ := backstage.InfoFrom(ctx)
			runs.write(fmt.Sprintf("%s %d", in, info.Attempt))
			switch {
			case in == "flaky" && info.Attempt < 3:
				return errors.New("the network is down")
			case in == "unknown":
				return backstage.Permanent(errors.New("unknown account"))
			case in == "503":
				return errors.New("503 Service Unavailable")
			}
			return nil
		}, backstage.Policy{MaxAttempts: 5, Backoff: backstage.Backoff{Base: 100 * time.Millisecond, Cap: 2 * time.Second}}))
		ids := make(map[string]string)
		for _, in := range []string{"ok", "flaky", "unknown", "503"} {
			ids[in] = r.enqueue(job(task("charge"), in)).ID
		}
		pass(20 * time.Second)

		r.wantLife(ids["ok"], "enqueued: stored", "run 1", "done", "acked")
		r.wantLife(ids["flaky"], "enqueued: stored", "run 1", "failed", "retried as failed", "run 2", "failed", "retried as failed", "run 3", "done", "acked")
		r.wantLife(ids["unknown"], "enqueued: stored", "run 1", "permanent", "dead-lettered as permanent")
		r.wantLife(ids["503"], "enqueued: stored", "run 1", "failed", "retried as failed", "run 2", "failed", "retried as failed",
			"run 3", "failed", "retried as failed", "run 4", "failed", "retried as failed", "run 5", "failed", "dead-lettered as exhausted")
		for _, letter := range r.dead() {
			switch letter.Job.ID {
			case ids["unknown"]:
				if f := letter.Failure; f.Class != provider.ClassPermanent || f.Message != "unknown account" || f.Attempt != 1 || letter.Job.Counters.Failures != 1 {
					r.Errorf("unknown account: dead letter %+v with counters %+v, want permanent, its message, attempt 1", f, letter.Job.Counters)
				}
			case ids["503"]:
				if f := letter.Failure; f.Class != provider.ClassExhausted || f.Attempt != 5 || letter.Job.Counters.Failures != 5 || len(letter.Job.History) != 5 {
					r.Errorf("503: dead letter %+v with counters %+v and %d failures on record, want exhausted, attempt 5, five", f, letter.Job.Counters, len(letter.Job.History))
				}
			default:
				r.Errorf("dead letter of job %s, want none", letter.Job.ID)
			}
		}
		retried, _ := eventsOf[backstage.JobSettled](r.events)
		for _, e := range retried {
			if e.Settlement != backstage.Retried {
				continue
			}
			if ceiling := 100 * time.Millisecond << (e.Failure.Attempt - 1); e.After < 0 || e.After > min(ceiling, 2*time.Second) {
				r.Errorf("wait after attempt %d is %v, want at most %v", e.Failure.Attempt, e.After, ceiling)
			}
		}
	})
}

// TestMaxAttemptsIsTheNumberOfFailedRuns: the first included, by code and by call.
func TestMaxAttemptsIsTheNumberOfFailedRuns(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inRounds(t, func(r *rig) {
				runs := newLedger()
				fail := func(_ context.Context, in string) error { runs.write(in); return errBoom }
				r.start(backstage.WorkerConfig{}, handle("a", fail, backstage.Policy{MaxAttempts: n}), handle("b", fail))
				r.enqueue(job(task("a"), "code"))
				r.enqueue(job(task("b"), "call", backstage.WithMaxAttempts(n)))
				pass(time.Hour)
				count := map[string]int{}
				for _, in := range runs.read() {
					count[in]++
				}
				if count["code"] != n || count["call"] != n {
					r.Errorf("runs = %v, want %d each", count, n)
				}
				for _, letter := range r.dead() {
					if letter.Failure.Class != provider.ClassExhausted || int(letter.Failure.Attempt) != n {
						r.Errorf("dead letter %+v, want exhausted at attempt %d", letter.Failure, n)
					}
				}
			})
		})
	}
}

// TestSnoozeCountsAsNothing: snoozes leave the attempt as it is.
func TestSnoozeCountsAsNothing(t *testing.T) {
	inRounds(t, func(r *rig) {
		var runs counter
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
			n := runs.add()
			info, _ := backstage.InfoFrom(ctx)
			if info.Attempt != 1 || info.Snoozes != n-1 {
				r.Errorf("run %d: attempt %d, snoozes %d; want attempt 1, snoozes %d", n, info.Attempt, info.Snoozes, n-1)
			}
			if n <= 7 {
				return backstage.Snooze(time.Minute)
			}
			return nil
		}, backstage.Policy{MaxAttempts: 1}))
		r.enqueue(job(task("a"), ""))
		pass(6*time.Minute + 30*time.Second)
		if n := runs.get(); n != 7 {
			r.Fatalf("after 6m30s of snoozes by a minute there were %d runs, want 7", n)
		}
		pass(time.Minute)
		if n := runs.get(); n != 8 {
			r.Errorf("%d runs, want 8", n)
		}
		r.wantNothingLeft()
	})
}

func TestSnoozeIsBoundedByMaxAge(t *testing.T) {
	inRounds(t, func(r *rig) {
		var runs counter
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error {
			runs.add()
			return backstage.Snooze(time.Hour)
		}, backstage.Policy{MaxAge: 10*time.Hour + time.Minute}))
		r.enqueue(job(task("a"), "", backstage.In(time.Hour)))
		pass(48 * time.Hour)
		if n := runs.get(); n != 11 {
			r.Errorf("%d runs in 10h from first due, want 11", n)
		}
		if f := r.onlyDead().Failure; f.Class != provider.ClassTooOld || f.Attempt != 0 {
			r.Errorf("dead letter %+v, want too old, without a failed attempt", f)
		}
	})
}

func TestRetryAfterReplacesTheBackoff(t *testing.T) {
	inRounds(t, func(r *rig) {
		runs := newLedger()
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error {
			runs.write("")
			return fmt.Errorf("called: %w", backstage.RetryAfter(errBoom, 7*time.Minute))
		}, backstage.Policy{MaxAttempts: 3}))
		r.enqueue(job(task("a"), ""))
		pass(time.Hour)
		if at := runs.at(); len(at) != 3 || at[1] < 7*time.Minute || at[1] > 7*time.Minute+time.Second || at[2] < 14*time.Minute {
			r.Errorf("runs at %v, want three, each 7m after the last", at)
		}
		if f := r.onlyDead().Failure; f.Class != provider.ClassExhausted || f.Message != "called: boom" {
			r.Errorf("dead letter %+v, want exhausted with the handler's message", f)
		}
	})
}

func TestNoRetryAfterMaxAge(t *testing.T) {
	inRounds(t, func(r *rig) {
		var runs counter
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error {
			runs.add()
			return errBoom
		}, backstage.Policy{MaxAttempts: 1000, MaxAge: time.Hour, Backoff: backstage.Backoff{Base: 10 * time.Minute, Cap: 10 * time.Minute}}))
		r.enqueue(job(task("a"), "", backstage.In(24*time.Hour)))
		pass(30 * time.Hour)
		n := runs.get()
		if n != 6 && n != 7 {
			r.Errorf("%d runs within an hour of first due, one every 10m; want 6 or 7", n)
		}
		if f := r.onlyDead().Failure; f.Class != provider.ClassTooOld || int(f.Attempt) != n {
			r.Errorf("dead letter %+v, want too old at attempt %d", f, n)
		}
	})
}

// TestSkipEndsTheJobAndDropsItsNextJobs is for a handler's Skip and a guard's.
func TestSkipEndsTheJobAndDropsItsNextJobs(t *testing.T) {
	inBubble(t, func(r *rig) {
		asked := newLedger()
		guard := func(name string, skip bool) backstage.Interceptor {
			return backstage.Guard(name, func(context.Context, *backstage.Run) error {
				asked.write(name)
				if skip {
					return fmt.Errorf("looked it up: %w", backstage.Skip("cancelled by the customer"))
				}
				return nil
			})
		}
		r.start(backstage.WorkerConfig{},
			chain("a", func(_ context.Context, _ string, next *backstage.Next) error {
				backstage.Add(next, task("b"), "a.b", &text{})
				return backstage.Skip("nothing to do")
			}),
			handle("guarded", func(context.Context, string) error { asked.write("handler"); return nil },
				backstage.Intercept(guard("first", false), guard("second", true), guard("third", false))),
			handle("b", func(context.Context, string) error { r.Error("the next job of a skipped run has run"); return nil }),
		)
		a := r.enqueue(job(task("a"), "")).ID
		g := r.enqueue(job(task("guarded"), "")).ID
		pass(time.Second)
		r.wantLife(a, "enqueued: stored", "run 1", "skipped (nothing to do)", "acked")
		r.wantLife(g, "enqueued: stored", "run 1", "skipped (second cancelled by the customer)", "acked")
		if got := strings.Join(asked.read(), " "); got != "first second" {
			r.Errorf("asked were %q, want the first and the second guard only", got)
		}
		r.wantNothingLeft()
	})
}

func TestGuardErrorEndsTheRunAsTheHandlersWould(t *testing.T) {
	inBubble(t, func(r *rig) {
		check := backstage.Guard("g", func(context.Context, *backstage.Run) error { return backstage.Permanent(errBoom) })
		r.start(backstage.WorkerConfig{Interceptors: []backstage.Interceptor{check}},
			handle("a", func(context.Context, string) error { r.Error("the handler ran behind a guard that failed"); return nil }))
		r.enqueue(job(task("a"), ""))
		pass(time.Second)
		if f := r.onlyDead().Failure; f.Class != provider.ClassPermanent || f.Message != "boom" {
			r.Errorf("dead letter %+v, want permanent: boom", f)
		}
	})
}

// TestPanicAndGoexitAreFailures: with their stack, and the worker goes on.
func TestPanicAndGoexitAreFailures(t *testing.T) {
	inRounds(t, func(r *rig) {
		r.start(backstage.WorkerConfig{Concurrency: 1}, handle("a", func(_ context.Context, in string) error {
			switch in {
			case "panic":
				panicHere()
			case "exit":
				exitHere()
			}
			return nil
		}, backstage.Policy{MaxAttempts: 2}))
		ids := map[string]string{}
		for _, in := range []string{"panic", "exit", "fine"} {
			ids[in] = r.enqueue(job(task("a"), in)).ID
		}
		pass(time.Hour)
		r.wantLife(ids["panic"], "enqueued: stored", "run 1", "panic", "retried as panic", "run 2", "panic", "dead-lettered as exhausted")
		r.wantLife(ids["exit"], "enqueued: stored", "run 1", "exit", "retried as exit", "run 2", "exit", "dead-lettered as exhausted")
		r.wantLife(ids["fine"], "enqueued: stored", "run 1", "done", "acked")
		for _, letter := range r.dead() {
			where, class := "panicHere", provider.ClassPanic
			if letter.Job.ID == ids["exit"] {
				where, class = "exitHere", provider.ClassExit
			}
			for _, f := range letter.Job.History {
				if !strings.Contains(f.Detail, where) {
					r.Errorf("the stack of %s does not show %s:\n%s", class, where, f.Detail)
				}
			}
			if first := letter.Job.History[0]; first.Class != class {
				r.Errorf("class of the first failure = %q, want %q", first.Class, class)
			}
		}
		if err := r.last.Health(r.Context()); err != nil {
			r.Errorf("health after a panic and an exit: %v, want nil", err)
		}
	})
}

// TestAnErrorThatPanicsWhenItIsRead is a panic of its run, and the worker goes on.
func TestAnErrorThatPanicsWhenItIsRead(t *testing.T) {
	inRounds(t, func(r *rig) {
		r.start(backstage.WorkerConfig{}, handle("a", func(_ context.Context, in string) error {
			var none *backstage.TooLargeError // an error that is not nil
			if in == "wrapped" {
				return backstage.Permanent(none)
			}
			return none
		}, backstage.Policy{MaxAttempts: 2}))
		ids := []string{r.enqueue(job(task("a"), "")).ID, r.enqueue(job(task("a"), "wrapped")).ID}
		pass(time.Hour)
		for _, id := range ids {
			r.wantLife(id, "enqueued: stored", "run 1", "panic", "retried as panic", "run 2", "panic", "dead-lettered as exhausted")
		}
	})
}

func panicHere() { panic("at the disco") }
func exitHere()  { runtime.Goexit() }

func TestTimeout(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, in string) error {
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, backstage.ErrTimeout) {
				r.Errorf("cause of the handler's context = %v, want ErrTimeout", cause)
			}
			if in == "late" {
				time.Sleep(3 * time.Second)
				return nil
			}
			return ctx.Err()
		}, backstage.Policy{Timeout: 10 * time.Second, MaxAttempts: 1}))
		late := r.enqueue(job(task("a"), "late")).ID
		fails := r.enqueue(job(task("a"), "fails")).ID
		call := r.enqueue(job(task("a"), "fails", backstage.WithTimeout(time.Minute))).ID
		pass(30 * time.Second)
		r.wantLife(late, "enqueued: stored", "run 1", "done late", "acked")
		r.wantLife(fails, "enqueued: stored", "run 1", "timeout late", "dead-lettered as exhausted")
		r.wantLife(call, "enqueued: stored", "run 1")
		pass(time.Minute)
		r.wantLife(call, "enqueued: stored", "run 1", "timeout late", "dead-lettered as exhausted")
	})
}

// TestSlotWaitsForALateHandler: a handler that ignores its context keeps its slot,
// its lease, and its job's only run.
func TestSlotWaitsForALateHandler(t *testing.T) {
	inRounds(t, func(r *rig) {
		runs := newLedger()
		r.start(backstage.WorkerConfig{Concurrency: 1}, handle("a", func(_ context.Context, in string) error {
			runs.write("start " + in)
			if in == "slow" {
				time.Sleep(10 * time.Minute)
			}
			runs.write("end " + in)
			return errBoom
		}, backstage.Policy{Timeout: time.Second, MaxAttempts: 2, Backoff: backstage.Backoff{Base: time.Second, Cap: time.Second}}))
		r.enqueue(job(task("a"), "slow", backstage.WithMaxAttempts(1)))
		r.enqueue(job(task("a"), "quick", backstage.WithMaxAttempts(1)))
		pass(time.Hour)
		if got := strings.Join(runs.read(), ", "); got != "start slow, end slow, start quick, end quick" {
			r.Errorf("runs: %s; want the quick one after the slow one, each once", got)
		}
	})
}

func TestStuckHandlers(t *testing.T) {
	inBubble(t, func(r *rig) {
		told := newLedger()
		release := make(chan struct{})
		w := r.start(backstage.WorkerConfig{Concurrency: 4, OnStuck: func(e backstage.RunStuck) {
			told.write(e.Job.ID)
			<-release // heartbeats go on beside it
		}},
			handle("a", func(context.Context, string) error { <-release; return nil }, backstage.Policy{Timeout: time.Minute}))
		one := r.enqueue(job(task("a"), "")).ID
		pass(time.Minute + 29*time.Second)
		if n, _ := eventsOf[backstage.RunStuck](r.events); len(n) != 0 {
			r.Fatalf("stuck within one lease of the deadline: %v", n)
		}
		pass(15 * time.Second)
		r.wantLife(one, "enqueued: stored", "run 1", "stuck")
		if ids := told.read(); len(ids) != 1 || ids[0] != one {
			r.Errorf("OnStuck was told of %v, want of %s once", ids, one)
		}
		if err := w.Health(r.Context()); err != nil {
			r.Errorf("health with one of four handlers stuck: %v, want nil", err)
		}
		r.enqueue(job(task("a"), ""))
		pass(2 * time.Minute)
		if lost, _ := eventsOf[backstage.LeaseLost](r.events); len(lost) > 0 {
			r.Errorf("leases were lost beside an OnStuck that blocks: %+v", lost)
		}
		if err := w.Health(r.Context()); err == nil || !strings.Contains(err.Error(), "2 of 4 handlers are stuck") {
			r.Errorf("health with two of four handlers stuck: %v, want an error that says so", err)
		}
		close(release)
		pass(time.Second)
		if err := w.Health(r.Context()); err != nil {
			r.Errorf("health after the stuck handlers returned: %v, want nil", err)
		}
		r.wantLife(one, "enqueued: stored", "run 1", "stuck", "done late", "acked")
		if stuck, _ := eventsOf[backstage.RunStuck](r.events); stuck[0].Running < 90*time.Second || stuck[0].Running > 110*time.Second {
			r.Errorf("stuck handler is said to run for %v, want one timeout and one lease, at most a heartbeat more", stuck[0].Running)
		}
	})
}

func TestExpiredJobsDoNotStart(t *testing.T) {
	inRounds(t, func(r *rig) {
		runs := newLedger()
		b := task("b", func(t *backstage.Task[*text]) { t.Expires = time.Minute })
		expired := r.enqueue(job(b, "too late")).ID
		r.enqueue(job(b, "in time", backstage.WithExpires(time.Hour)))
		r.enqueue(job(b, "from first due", backstage.In(10*time.Minute)))
		pass(5 * time.Minute)
		r.start(backstage.WorkerConfig{}, handle("b", func(_ context.Context, in string) error { runs.write(in); return nil }))
		pass(time.Hour)
		if got := strings.Join(runs.read(), ", "); got != "in time, from first due" {
			r.Errorf("runs: %s; want those that started in time", got)
		}
		if letter := r.onlyDead(); letter.Job.ID != expired || letter.Failure.Class != provider.ClassExpired {
			r.Errorf("dead letter %+v, want the expired job", letter.Failure)
		}
		r.wantLife(expired, "enqueued: stored", "dead-lettered as expired")
	})
}

// TestExpiryIsForTheFirstStart: what has run may be retried later.
func TestExpiryIsForTheFirstStart(t *testing.T) {
	inRounds(t, func(r *rig) {
		var runs counter
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error {
			if runs.add() < 3 {
				return backstage.RetryAfter(errBoom, time.Hour)
			}
			return nil
		}))
		r.enqueue(job(task("a"), "", backstage.WithExpires(time.Minute)))
		pass(3 * time.Hour)
		if n := runs.get(); n != 3 {
			r.Errorf("%d runs, want 3: a retry does not expire", n)
		}
		r.wantNothingLeft()
	})
}

func TestUndecodablePayloadKeepsItsBytes(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { r.Error("it ran"); return nil }))
		r.put(provider.Job{ID: "j", Task: "a", Payload: []byte("\xff\xfe garbage")})
		pass(time.Second)
		letter := r.onlyDead()
		if letter.Failure.Class != provider.ClassUndecodable || string(letter.Job.Payload) != "\xff\xfe garbage" {
			r.Errorf("dead letter %+v with payload %q, want undecodable, the bytes kept", letter.Failure, letter.Job.Payload)
		}
		r.wantLife("j", "dead-lettered as undecodable")
	})
}

// TestForeignBytesDoNotStopTheOthers: the provider reports, the worker goes on.
func TestForeignBytesDoNotStopTheOthers(t *testing.T) {
	inBubble(t, func(r *rig) {
		var runs counter
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { runs.add(); return nil }))
		r.store.Put(backstage.DefaultQueue, []byte("no record"))
		r.enqueue(job(task("a"), ""))
		pass(time.Second)
		if n := runs.get(); n != 1 {
			r.Errorf("%d runs behind bytes that are no record, want 1", n)
		}
		if got := r.events.life("provider"); len(got) != 1 || got[0] != string(provider.ForeignRecord) {
			r.Errorf("provider events %v, want one of kind %q", got, provider.ForeignRecord)
		}
	})
}

// TestALateRunThatIsStopped fails by its timeout, whether or not its handler ever asked
// for the context's end.
func TestALateRunThatIsStopped(t *testing.T) {
	for name, asks := range map[string]bool{"asks": true, "never asks": false} {
		inBubbleSub(t, name, func(r *rig) {
			w := r.start(backstage.WorkerConfig{ShutdownGrace: time.Second}, handle("a", func(ctx context.Context, _ string) error {
				if asks {
					_ = ctx.Done()
				}
				time.Sleep(4 * time.Second)
				return errBoom
			}, backstage.Policy{Timeout: time.Second}))
			id := r.enqueue(job(task("a"), "x")).ID
			pass(2500 * time.Millisecond)
			if err := w.stop(); err != nil {
				r.Errorf("stop: %v", err)
			}
			r.wantLife(id, "enqueued: stored", "run 1", "timeout late", "retried as timeout")
		})
	}
}

// TestABackoffWithoutEnd is bounded by what a time can be.
func TestABackoffWithoutEnd(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { return errBoom }))
		r.put(provider.Job{ID: "1", Task: "a", Counters: provider.Counters{Failures: 34},
			Overrides: provider.Overrides{MaxAttempts: 100, BackoffBase: time.Second, BackoffCap: math.MaxInt64}})
		pass(time.Hour)
		r.wantLife("1", "run 35", "failed", "dead-lettered as too old")
	})
}
