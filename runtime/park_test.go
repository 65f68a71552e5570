package backstage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// TestUnknownTaskIsParkedUntilAWorkerKnowsIt, with a delay that grows, and counts
// as nothing.
func TestUnknownTaskIsParkedUntilAWorkerKnowsIt(t *testing.T) {
	inRounds(t, func(r *rig) {
		r.start(backstage.WorkerConfig{}, handle("known", nothing))
		id := r.enqueue(job(task("new"), "")).ID
		pass(time.Hour)
		parked, at := eventsOf[backstage.JobSettled](r.events)
		for i, e := range parked {
			want := min(time.Duration(i+1)*time.Second, 5*time.Minute)
			if e.Why != provider.ParkedAgain || e.After != want {
				r.Errorf("park %d at %v: %+v; want parked for %v", i, at[i], e, want)
			}
		}
		if len(parked) < 10 {
			r.Errorf("%d parks in an hour", len(parked))
		}
		if err := r.last.stop(); err != nil {
			r.Fatal(err)
		}
		r.start(backstage.WorkerConfig{}, handle("known", nothing), handle("new", func(ctx context.Context, _ string) error {
			if info, _ := backstage.InfoFrom(ctx); info.Attempt != 1 || info.Crashes != 0 {
				r.Errorf("attempt %d, crashes %d; want 1 and 0", info.Attempt, info.Crashes)
			}
			return nil
		}))
		pass(6 * time.Minute)
		life := r.events.life(id)
		if n := len(life); life[n-1] != "acked" || life[n-3] != "run 1" {
			r.Errorf("life ends in %v, want a run and an ack", life[n-3:])
		}
		r.wantNothingLeft()
	})
}

func TestUnknownTaskIsDeadAfterMaxAge(t *testing.T) {
	inRounds(t, func(r *rig) {
		r.start(backstage.WorkerConfig{}, handle("known", nothing))
		short := r.enqueue(job(task("new"), "", backstage.WithMaxAge(time.Hour))).ID
		r.enqueue(job(task("new"), ""))
		pass(time.Hour)
		letter := r.onlyDead()
		if letter.Job.ID != short || letter.Failure.Class != provider.ClassUnknownTask || letter.At.Sub(letter.Job.FirstDue) != time.Hour {
			r.Errorf("dead letter of %s, %+v, after %v; want of %s, unknown task, after 1h", letter.Job.ID, letter.Failure, letter.At.Sub(letter.Job.FirstDue), short)
		}
		pass(8 * 24 * time.Hour)
		if n := len(r.dead()); n != 2 {
			r.Errorf("%d dead letters after the default max age, want 2", n)
		}
	})
}

// TestRecordOfANewerVersionIsParked, and unknown fields or not, keeps waiting for a
// worker that can read it.
func TestRecordOfANewerVersionIsParked(t *testing.T) {
	inRounds(t, func(r *rig) {
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { r.Error("it ran"); return nil }))
		r.put(provider.Job{ID: "format", Task: "a", Format: provider.Format + 1})
		r.put(provider.Job{ID: "requires", Task: "a", Requires: []string{"payload encryption"}})
		pass(10 * time.Second)
		for _, id := range []string{"format", "requires"} {
			if life := r.events.life(id); len(life) < 3 || life[0] != "retried as parked" {
				r.Errorf("life of %s: %v; want parks", id, life)
			}
		}
		pass(8 * 24 * time.Hour)
		for _, letter := range r.dead() {
			if letter.Failure.Class != provider.ClassUnknownTask {
				r.Errorf("dead letter %+v, want unknown task", letter.Failure)
			}
			if letter.Job.ID == "format" && letter.Job.Format != provider.Format+1 {
				r.Errorf("its format is %d now, want it kept", letter.Job.Format)
			}
		}
	})
}

// TestRollingDeploy: an old worker that knows A only, and a new one, on one queue.
func TestRollingDeploy(t *testing.T) {
	inRounds(t, func(r *rig) {
		var a, b counter
		countA := handle("A", func(context.Context, string) error { a.add(); return nil })
		countB := handle("B", func(ctx context.Context, _ string) error {
			if info, _ := backstage.InfoFrom(ctx); info.Attempt != 1 {
				r.Errorf("attempt %d, want 1", info.Attempt)
			}
			b.add()
			return nil
		}, backstage.Policy{MaxAttempts: 1})
		r.start(backstage.WorkerConfig{}, countA)
		next := *r
		next.start(backstage.WorkerConfig{}, countA, countB)
		for i := range 100 {
			r.enqueue(job(task("A"), fmt.Sprint(i)))
			r.enqueue(job(task("B"), fmt.Sprint(i)))
		}
		pass(time.Hour)
		if a.get() != 100 || b.get() != 100 {
			r.Errorf("%d jobs of A and %d of B ran, want 100 each", a.get(), b.get())
		}
		r.wantNothingLeft()
	})
}

// TestRenameByAlias: jobs under the old name are run by the new handler, and keep
// their name.
func TestRenameByAlias(t *testing.T) {
	inBubble(t, func(r *rig) {
		seen := newLedger()
		r.enqueue(job(task("v1.BookParcel"), ""))
		r.enqueue(job(task("v1.ShipOrder"), ""))
		r.start(backstage.WorkerConfig{}, handle("v1.ShipOrder", func(ctx context.Context, _ string) error {
			info, _ := backstage.InfoFrom(ctx)
			seen.write(info.Task)
			return nil
		}, backstage.Registration{Aliases: []string{"v1.BookParcel"}}))
		pass(time.Second)
		if got := seen.read(); len(got) != 2 {
			r.Errorf("runs of %v, want both names", got)
		}
		r.wantNothingLeft()
	})
}
