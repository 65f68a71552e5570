package backstage_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// silent drops heartbeats while on, and says that they went well.
func silent(on *atomic.Bool) func(context.Context, int, func() []error) []error {
	return func(_ context.Context, n int, do func() []error) []error {
		if on.Load() {
			return make([]error, n)
		}
		return do()
	}
}

func TestHeartbeatKeepsALongJobAtOneRun(t *testing.T) {
	inRounds(t, func(r *rig) {
		runs := newLedger()
		long := handle("a", func(ctx context.Context, _ string) error {
			runs.write("")
			time.Sleep(150 * time.Second)
			return ctx.Err()
		}, backstage.Policy{Timeout: time.Hour})
		r.start(backstage.WorkerConfig{}, long)
		r.other().start(backstage.WorkerConfig{}, long)
		id := r.enqueue(job(task("a"), "")).ID
		pass(10 * time.Minute)
		r.wantLife(id, "enqueued: stored", "run 1", "done", "acked")
		if runs.count() != 1 {
			r.Errorf("a job of five leases ran %d times, want once", runs.count())
		}
	})
}

// TestDeadWorkersJobsAreTakenOver within one lease plus five seconds, and the
// crash is counted, not an attempt.
func TestDeadWorkersJobsAreTakenOver(t *testing.T) {
	inBubble(t, func(r *rig) {
		runs := newLedger()
		var dying atomic.Bool
		a := handle("a", func(ctx context.Context, _ string) error {
			info, _ := backstage.InfoFrom(ctx)
			runs.write("")
			if dying.CompareAndSwap(true, false) {
				r.store.Drop(r.p)
				return errBoom
			}
			if info.Attempt != 1 || info.Crashes != 1 {
				r.Errorf("attempt %d with %d crashes, want 1 and 1", info.Attempt, info.Crashes)
			}
			return nil
		})
		r.start(backstage.WorkerConfig{}, a)
		dying.Store(true)
		r.enqueue(job(task("a"), ""))
		pass(0)
		r.other().start(backstage.WorkerConfig{}, a)
		pass(time.Minute)
		if at := runs.at(); len(at) != 2 || at[1] > 35*time.Second {
			r.Errorf("runs at %v, want a second one within 35s", at)
		}
	})
}

// TestLostLease cancels the handler and has its settlement refused, however the
// loss becomes known; another worker runs the job.
func TestLostLease(t *testing.T) {
	for _, known := range []string{"by its session", "by heartbeat", "by settlement"} {
		inBubbleSub(t, known, func(r *rig) {
			var deaf atomic.Bool
			deaf.Store(true)
			r.hooks.extend = silent(&deaf)
			r.hooks.noLost = known != "by its session"
			var here context.Context
			stop := make(chan struct{})
			first := r.start(backstage.WorkerConfig{Queues: []backstage.Queue{{Name: "q"}}}, handle("a", func(ctx context.Context, _ string) error {
				here = ctx
				<-stop
				return nil
			}, backstage.Policy{Timeout: time.Hour}, backstage.Serve("q")))
			id := r.enqueue(job(task("a"), "", backstage.OnQueue("q"))).ID
			pass(time.Second)
			// The first must not take its own job back.
			r.hooks.receive = func(ctx context.Context, _ []string, _ int, _ func() ([]provider.Delivery, error)) ([]provider.Delivery, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			r.enqueue(job(task("a"), "", backstage.OnQueue("q"))) // ends the Receive under way
			pass(time.Second)
			var second counter
			r.other().start(backstage.WorkerConfig{Queues: []backstage.Queue{{Name: "q"}}}, handle("a", func(context.Context, string) error { second.add(); return nil }, backstage.Serve("q")))
			pass(40 * time.Second)
			if second.get() != 2 {
				r.Fatalf("the second worker ran %d jobs, want the first's two; the log:\n%s", second.get(), r.events)
			}
			deaf.Store(known == "by settlement")
			pass(15 * time.Second)
			if cause := context.Cause(here); known != "by settlement" && !errors.Is(cause, backstage.ErrLeaseLost) {
				r.Errorf("cause of the handler's context = %v, want ErrLeaseLost", cause)
			}
			close(stop)
			pass(time.Second)
			if lost, _ := eventsOf[backstage.LeaseLost](r.events); len(lost) != 2 || lost[0].Running != (known != "by settlement") {
				r.Errorf("events LeaseLost: %+v, want one for each job, running unless its settlement told", lost)
			}
			acked := 0
			for _, word := range r.events.life(id) {
				if word == "acked" {
					acked++
				}
			}
			if acked != 1 {
				r.Errorf("life of the job: %v; want one ack, the second worker's", r.events.life(id))
			}
			if err := first.stop(); err != nil {
				r.Errorf("Run = %v, want nil: nothing of the first worker's is left", err)
			}
		})
	}
}

// TestUnknownHeartbeatsForAWholeLeaseCancelTheHandler, and the job is given back,
// because it may still be ours.
func TestUnknownHeartbeatsForAWholeLeaseCancelTheHandler(t *testing.T) {
	inBubble(t, func(r *rig) {
		var cut atomic.Bool
		cut.Store(true)
		r.hooks.extend = func(_ context.Context, n int, do func() []error) []error {
			errs := do() // the heartbeat arrives, its answer does not
			for i := range errs {
				if cut.Load() {
					errs[i] = errBoom
				}
			}
			return errs
		}
		runs := newLedger()
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
			runs.write("")
			if runs.count() > 1 {
				return nil
			}
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, backstage.ErrLeaseLost) {
				r.Errorf("cause = %v, want ErrLeaseLost", cause)
			}
			cut.Store(false)
			return ctx.Err()
		}, backstage.Policy{Timeout: time.Hour, MaxAttempts: 1}))
		id := r.enqueue(job(task("a"), "")).ID
		pass(2 * time.Minute)
		if at := runs.at(); len(at) != 2 || at[1] < 30*time.Second || at[1] > 41*time.Second {
			r.Errorf("runs at %v, want a second after one lease, at most a heartbeat more", at)
		}
		r.wantLife(id, "enqueued: stored", "run 1", "lost", "released", "run 1", "done", "acked")
		r.wantNothingLeft()
	})
}

// TestAFewUnknownHeartbeatsDoNoHarm: every second one arrives.
func TestAFewUnknownHeartbeatsDoNoHarm(t *testing.T) {
	inBubble(t, func(r *rig) {
		var n counter
		r.hooks.extend = func(_ context.Context, size int, do func() []error) []error {
			if n.add()%2 != 0 {
				return slices.Repeat([]error{errBoom}, size)
			}
			return do()
		}
		r.start(backstage.WorkerConfig{Lease: time.Minute}, handle("a", func(ctx context.Context, _ string) error {
			time.Sleep(10 * time.Minute)
			return ctx.Err()
		}, backstage.Policy{Timeout: time.Hour}))
		id := r.enqueue(job(task("a"), "")).ID
		pass(11 * time.Minute)
		r.wantLife(id, "enqueued: stored", "run 1", "done", "acked")
	})
}

// TestRedeliveryOfARunningJob waits for the run that this process has, and takes
// what it said plainly; any other error of a lost run counts as nothing.
func TestRedeliveryOfARunningJob(t *testing.T) {
	for _, row := range []struct {
		name string
		ends func() error
		runs int
		dead string
	}{
		{"nil", func() error { return nil }, 1, ""},
		{"skip", func() error { return backstage.Skip("gone") }, 1, ""},
		{"permanent", func() error { return backstage.Permanent(errBoom) }, 1, provider.ClassPermanent},
		{"error", func() error { return errBoom }, 2, ""},
		{"snooze", func() error { return backstage.Snooze(time.Minute) }, 2, ""},
		{"retry after", func() error { return backstage.RetryAfter(errBoom, time.Minute) }, 2, ""},
		{"panic", func() error { panic("late") }, 2, ""},
	} {
		for _, leases := range []int{1, 3} { // how many leases the run outlives: later redeliveries are lost too
			inBubbleSub(t, row.name, func(r *rig) {
				var deaf atomic.Bool
				deaf.Store(true)
				r.hooks.extend = silent(&deaf)
				var live, most atomic.Int32
				children := newLedger()
				runs := newLedger()
				r.start(backstage.WorkerConfig{},
					chain("a", func(ctx context.Context, _ string, next *backstage.Next) error {
						if ctx.Err() != nil {
							r.Error("a run was started whose lease was lost")
						}
						most.Store(max(most.Load(), live.Add(1)))
						defer live.Add(-1)
						runs.write("")
						backstage.Add(next, task("b"), "a.b", &text{Value: "child"})
						if runs.count() > 1 {
							if info, _ := backstage.InfoFrom(ctx); info.Attempt != 1 {
								r.Errorf("the run afresh is attempt %d, want 1: a lost run counts as nothing", info.Attempt)
							}
							return nil
						}
						time.Sleep(time.Duration(leases)*30*time.Second + 15*time.Second)
						deaf.Store(false)
						return row.ends()
					}, backstage.Policy{Timeout: time.Hour}),
					handle("b", func(ctx context.Context, _ string) error {
						info, _ := backstage.InfoFrom(ctx)
						children.write(info.ID)
						return nil
					}))
				id := r.enqueue(job(task("a"), "")).ID
				pass(20 * time.Minute)
				if runs.count() != row.runs || most.Load() != 1 {
					r.Errorf("%d runs, %d at once; want %d, one at a time; life: %v", runs.count(), most.Load(), row.runs, r.events.life(id))
				}
				wantChildren := 1
				if row.dead != "" || row.name == "skip" {
					wantChildren = 0
				}
				if children.count() != wantChildren {
					r.Errorf("%d next jobs ran, want %d", children.count(), wantChildren)
				}
				if row.dead != "" {
					if f := r.onlyDead().Failure; f.Class != row.dead {
						r.Errorf("dead letter %+v, want %s", f, row.dead)
					}
				} else {
					r.wantNothingLeft()
				}
			})
		}
	}
}

// TestAckIsTriedAgainWhileTheLeaseHolds, and the handler runs once.
func TestAckIsTriedAgainWhileTheLeaseHolds(t *testing.T) {
	inRounds(t, func(r *rig) {
		var tries, runs counter
		r.hooks.settle = func(_ string, _ provider.Delivery, do func() error) error {
			if tries.add() <= 60 {
				return errBoom
			}
			return do()
		}
		w := r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { runs.add(); return nil }))
		id := r.enqueue(job(task("a"), "")).ID
		pass(time.Minute)
		if err := w.Health(r.Context()); !errors.Is(err, errBoom) {
			r.Errorf("health while nothing can be settled = %v, want the reason", err)
		}
		pass(10 * time.Minute)
		if runs.get() != 1 || tries.get() != 61 {
			r.Errorf("%d runs and %d settlements, want 1 and 61", runs.get(), tries.get())
		}
		if life := r.events.life(id); life[len(life)-1] != "acked" || life[3] != "not acked" {
			r.Errorf("life %v, want failed settlements and then the ack", life)
		}
		if err := w.Health(r.Context()); err != nil {
			r.Errorf("health after the settlement succeeded = %v, want nil", err)
		}
		r.wantNothingLeft()
	})
}

// TestRetryIsStoredOnceWhileTheAckFails: a copy that a lender has is not made
// again with each try to end the source.
func TestRetryIsStoredOnceWhileTheAckFails(t *testing.T) {
	inRounds(t, func(r *rig) {
		var tries counter
		runs := newLedger()
		r.hooks.settle = func(_ string, _ provider.Delivery, do func() error) error {
			if n := tries.add(); n <= 5 || n > 6 && n <= 11 {
				return errBoom
			}
			return do()
		}
		r.start(backstage.WorkerConfig{}, chain("a", func(_ context.Context, _ string, next *backstage.Next) error {
			runs.write("a")
			if runs.count() == 1 {
				return backstage.RetryAfter(errBoom, 0)
			}
			backstage.Add(next, task("b"), "a.b", &text{}, backstage.In(time.Millisecond))
			backstage.Add(next, task("b", func(t *backstage.Task[*text]) { t.Dedupe, t.DedupeFor = keyOf, time.Hour }), "a.b", &text{Value: "v"})
			return nil
		}), handle("b", func(context.Context, string) error { runs.write("b"); return nil }))
		r.enqueue(job(task("a"), ""))
		pass(10 * time.Minute)
		if got := strings.Join(runs.read(), " "); got != "a a b b" {
			r.Errorf("runs: %s; want each once", got)
		}
		r.wantNothingLeft()
	})
}

func TestFullDeadLetterStoreLosesNothing(t *testing.T) {
	inRounds(t, func(r *rig) {
		if _, err := memory.Open(memory.Config{Store: r.store, MaxDead: 1}); err != nil {
			r.Fatal(err)
		}
		runs := newLedger()
		r.start(backstage.WorkerConfig{Concurrency: 1}, handle("a", func(_ context.Context, in string) error {
			runs.write(in)
			if in == "fine" {
				return nil
			}
			return backstage.Permanent(errBoom)
		}))
		one := r.enqueue(job(task("a"), "dies")).ID
		other := r.enqueue(job(task("a"), "dies too")).ID
		fine := r.enqueue(job(task("a"), "fine")).ID
		pass(5 * time.Minute)
		r.wantLife(fine, "enqueued: stored", "run 1", "done", "acked")
		letter := r.onlyDead()
		if err := r.last.Health(r.Context()); !errors.Is(err, provider.ErrDeadFull) {
			r.Errorf("health = %v, want ErrDeadFull", err)
		}
		if _, err := r.p.Dead.Discard(r.Context(), letter.Address); err != nil {
			r.Fatal(err)
		}
		pass(5 * time.Second)
		dead := []string{letter.Job.ID, r.onlyDead().Job.ID} // whoever came first, the other waited
		if !slices.Contains(dead, one) || !slices.Contains(dead, other) || runs.count() != 3 {
			r.Errorf("dead are %v after %d runs, want %s and %s after 3", dead, runs.count(), one, other)
		}
	})
}

// TestSettlementWhoseAnswerWasLost is on record all the same: the second try says
// so.
func TestSettlementWhoseAnswerWasLost(t *testing.T) {
	inRounds(t, func(r *rig) {
		var tries counter
		r.hooks.settle = func(_ string, _ provider.Delivery, do func() error) error {
			err := do()
			if tries.add() == 1 {
				return errBoom
			}
			return err
		}
		w := r.start(backstage.WorkerConfig{}, handle("a", nothing))
		id := r.enqueue(job(task("a"), "")).ID
		pass(time.Second)
		r.wantLife(id, "enqueued: stored", "run 1", "done", "not acked", "acked")
		if err := w.stop(); err != nil {
			r.Errorf("Run = %v, want nil", err)
		}
		r.wantNothingLeft()
	})
}

// TestSessionThatIsLost cancels all handlers of its deliveries, and those that are
// still handed out by it.
func TestSessionThatIsLost(t *testing.T) {
	inBubble(t, func(r *rig) {
		session := make(chan struct{})
		r.hooks.session = session
		r.hooks.facts = func(f *provider.JobFacts) { f.Death = provider.Session }
		release := make(chan struct{})
		told := newLedger()
		w := r.start(backstage.WorkerConfig{ShutdownGrace: time.Second}, handle("a", func(ctx context.Context, in string) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), backstage.ErrLeaseLost) {
				r.Errorf("cause for %s = %v, want ErrLeaseLost", in, context.Cause(ctx))
			}
			told.write(in)
			<-release
			return ctx.Err()
		}, backstage.Policy{Timeout: time.Hour}))
		r.enqueue(job(task("a"), "1"))
		r.enqueue(job(task("a"), "2"))
		pass(time.Second)
		close(session)
		pass(0)
		if told.count() != 2 {
			r.Errorf("%v were cancelled when their session was lost, want both", told.read())
		}
		r.enqueue(job(task("a"), "late"))
		pass(0)
		if lost, _ := eventsOf[backstage.LeaseLost](r.events); len(lost) != 3 {
			r.Errorf("%d events LeaseLost, want one for each, the late one too", len(lost))
		}
		close(release)
		if err := w.stop(); err != nil {
			r.Errorf("Run = %v, want nil", err)
		}
	})
}
