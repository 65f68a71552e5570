package backstage_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// TestFiveCrashesConvict, and four do not.
func TestFiveCrashesConvict(t *testing.T) {
	inRounds(t, func(r *rig) {
		ran := newLedger()
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
			info, _ := backstage.InfoFrom(ctx)
			ran.write(fmt.Sprint(info.ID, info.Crashes))
			return nil
		}))
		r.put(provider.Job{ID: "four", Task: "a", Counters: provider.Counters{Crashes: 4}})
		r.put(provider.Job{ID: "five", Task: "a", Counters: provider.Counters{Crashes: 5}})
		pass(time.Minute)
		if got := ran.read(); len(got) != 1 || got[0] != "four4" {
			r.Errorf("runs %v, want only the job with four crashes", got)
		}
		letter := r.onlyDead()
		if letter.Job.ID != "five" || letter.Failure.Class != provider.ClassCrashed || letter.Failure.Attempt != 0 || letter.Job.Counters.Crashes != 5 {
			r.Errorf("dead letter %+v with %+v, want crashed, no attempt", letter.Failure, letter.Job.Counters)
		}
	})
}

// TestOneSuspectAtATime: the others are parked for a short time, never held.
func TestOneSuspectAtATime(t *testing.T) {
	inRounds(t, func(r *rig) {
		var live, most, done, fresh counter
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
			info, _ := backstage.InfoFrom(ctx)
			if info.Crashes < 2 {
				fresh.add()
				return nil
			}
			now := live.n.Add(1)
			most.n.Store(max(most.n.Load(), now))
			time.Sleep(2 * time.Second)
			live.n.Add(-1)
			done.add()
			return nil
		}))
		for i := range 6 {
			r.put(provider.Job{ID: fmt.Sprint("suspect-", i), Task: "a", Counters: provider.Counters{Crashes: 2 + int32(i%3)}})
		}
		for range 20 {
			r.enqueue(job(task("a"), ""))
		}
		pass(time.Second)
		if fresh.get() != 20 {
			r.Errorf("%d of 20 other jobs ran beside a suspect", fresh.get())
		}
		if stats, _ := r.p.Stats.Queue(r.Context(), backstage.DefaultQueue); true {
			if n, _ := stats.InFlight.Get(); n != 1 {
				r.Errorf("%d jobs in flight beside a running suspect, want only itself", n)
			}
		}
		pass(2 * time.Minute)
		if most.get() != 1 || done.get() != 6 {
			r.Errorf("%d suspects ran, %d at once; want 6, one at a time", done.get(), most.get())
		}
		r.wantNothingLeft()
	})
}

// TestAKillerConvictsOnlyItself: it dies by its own hand, those beside it are run.
func TestAKillerConvictsOnlyItself(t *testing.T) {
	inBubble(t, func(r *rig) {
		var current atomic.Pointer[rig]
		done := newLedger()
		a := handle("a", func(ctx context.Context, in string) error {
			if in == "killer" {
				at := current.Load()
				r.store.Drop(at.p)
				<-ctx.Done()
				return ctx.Err()
			}
			select {
			case <-time.After(time.Second):
				done.write(in)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, backstage.Policy{MaxAttempts: 1})
		r.enqueue(job(task("a"), "killer"))
		for i := range 9 {
			r.enqueue(job(task("a"), fmt.Sprint("innocent ", i)))
		}
		for range 12 {
			process := r.other()
			current.Store(process)
			process.start(backstage.WorkerConfig{ShutdownGrace: time.Millisecond}, a)
			pass(40 * time.Second)
		}
		letter := r.onlyDead()
		if letter.Failure.Class != provider.ClassCrashed || letter.Job.Counters.Crashes != backstage.MaxCrashes {
			r.Errorf("dead letter %+v after %d crashes, want the killer after %d", letter.Failure, letter.Job.Counters.Crashes, backstage.MaxCrashes)
		}
		seen := map[string]bool{}
		for _, in := range done.read() {
			seen[in] = true
		}
		if len(seen) != 9 {
			r.Errorf("%d of 9 innocent jobs were done: %v", len(seen), done.read())
		}
	})
}

// TestUpperBoundOfCrashes convicts by recorded starts: where the broker counts
// deliveries that never started, many of them do not kill a job, and each start of
// a suspect is put on record first.
func TestUpperBoundOfCrashes(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.hooks.facts = func(f *provider.JobFacts) { f.ExactCrashes = false }
		var runs counter
		w := backstage.WorkerConfig{}
		a := handle("a", func(context.Context, string) error { runs.add(); return nil })
		r.start(w, a)
		r.put(provider.Job{ID: "four", Task: "a", Counters: provider.Counters{Crashes: 4}})
		r.put(provider.Job{ID: "hundred", Task: "a", Counters: provider.Counters{Crashes: 100}})
		r.put(provider.Job{ID: "guilty", Task: "a", Counters: provider.Counters{Crashes: 10, Starts: 5, StartCrashes: 9}})
		r.put(provider.Job{ID: "fifth start", Task: "a", Counters: provider.Counters{Crashes: 9, Starts: 5, StartCrashes: 9}})
		pass(time.Minute)
		r.wantLife("four", "run 1", "done", "acked")
		for id, first := range map[string]string{"hundred": "retried to start", "fifth start": "run 1"} {
			var words []string
			for _, word := range r.events.life(id) {
				if word != "retried as parked" { // beside another suspect
					words = append(words, word)
				}
			}
			want := []string{"retried to start", "run 1", "done", "acked"}
			if first == "run 1" {
				want = want[1:]
			}
			if fmt.Sprint(words) != fmt.Sprint(want) {
				r.Errorf("life of %s: %v, want %v", id, words, want)
			}
		}
		if letter := r.onlyDead(); letter.Job.ID != "guilty" || letter.Failure.Class != provider.ClassCrashed {
			r.Errorf("dead letter %s %+v, want the guilty as crashed", letter.Job.ID, letter.Failure)
		}
		if runs.get() != 3 {
			r.Errorf("%d runs, want 3", runs.get())
		}
	})
}

// TestSuspectThatIsLostWhileItWaits for another to be put aside is not run.
func TestSuspectThatIsLostWhileItWaits(t *testing.T) {
	inBubble(t, func(r *rig) {
		var parks counter
		stall := make(chan struct{})
		r.hooks.settle = func(verb string, _ provider.Delivery, do func() error) error {
			if verb == "retry" && parks.add() == 1 {
				<-stall
			}
			return do()
		}
		var deaf atomic.Bool
		deaf.Store(true)
		r.hooks.extend = silent(&deaf)
		var runs counter
		r.put(provider.Job{ID: "1", Task: "a", Counters: provider.Counters{Crashes: 2}})
		r.put(provider.Job{ID: "2", Task: "a", Counters: provider.Counters{Crashes: 2}})
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
			if ctx.Err() != nil {
				r.Error("a suspect was started whose lease was lost")
			}
			runs.add()
			return nil
		}))
		pass(40 * time.Second)
		if runs.get() != 0 {
			r.Errorf("%d suspects ran beside another that was not put aside", runs.get())
		}
		deaf.Store(false)
		close(stall)
		pass(5 * time.Minute)
		if runs.get() != 2 {
			r.Errorf("%d suspects ran, want both in the end; the log:\n%s", runs.get(), r.events)
		}
	})
}

// TestSuspectsAfterAnOutage has a suspect that waits for another until its lease may have
// run out: it is given back, and both run once settlements work again.
func TestSuspectsAfterAnOutage(t *testing.T) {
	inBubble(t, func(r *rig) {
		var down atomic.Bool
		down.Store(true)
		r.hooks.settle = func(_ string, _ provider.Delivery, do func() error) error {
			if down.Load() {
				return errBoom
			}
			return do()
		}
		r.hooks.extend = func(_ context.Context, n int, do func() []error) []error {
			if down.Load() {
				return slices.Repeat([]error{errBoom}, n)
			}
			return do()
		}
		first := true
		r.hooks.receive = func(ctx context.Context, _ []string, _ int, do func() ([]provider.Delivery, error)) ([]provider.Delivery, error) {
			if !first { // the broker is away for longer than a lease
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(50 * time.Second):
				}
			}
			list, err := do()
			first = first && len(list) == 0
			return list, err
		}
		var runs counter
		for _, id := range []string{"1", "2"} {
			r.put(provider.Job{ID: id, Task: "a", Counters: provider.Counters{Crashes: 2}})
		}
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error {
			runs.add()
			return nil
		}))
		pass(41 * time.Second) // just after a heartbeat
		down.Store(false)
		pass(time.Hour)
		if runs.get() != 2 {
			r.Errorf("%d suspects ran within an hour after the outage, want both; log:\n%.3000s", runs.get(), r.events)
		}
	})
}

// TestEveryStartOfASuspectIsOnRecord: also the one after a start that failed, which then
// says nothing against the job any more.
func TestEveryStartOfASuspectIsOnRecord(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.hooks.facts = func(f *provider.JobFacts) { f.ExactCrashes = false }
		var runs counter
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error {
			if runs.add() <= 6 {
				return errBoom
			}
			return nil
		}, backstage.Policy{MaxAttempts: 10}))
		r.put(provider.Job{ID: "1", Task: "a", Counters: provider.Counters{Crashes: 6}})
		pass(24 * time.Hour)
		var want []string
		for n := range 6 {
			want = append(want, "retried to start", fmt.Sprintf("run %d", n+1), "failed", "retried as failed")
		}
		r.wantLife("1", append(want, "retried to start", "run 7", "done", "acked")...)
	})
}
