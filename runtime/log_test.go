package backstage_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// wantLog fails unless one line of the log has all of the parts.
func (r *rig) wantLog(parts ...string) {
	r.Helper()
	for line := range strings.Lines(r.logs.String()) {
		has := true
		for _, part := range parts {
			has = has && strings.Contains(line, part)
		}
		if has {
			return
		}
	}
	r.Errorf("no line of the log has all of %q:\n%s", parts, r.logs)
}

// TestParksAreLogged: the first of each task, and then one a minute however many
// there are, with why and for how long.
func TestParksAreLogged(t *testing.T) {
	inBubble(t, func(r *rig) {
		for i := range 1000 {
			r.put(provider.Job{ID: fmt.Sprint("j", i), Task: "new"})
		}
		r.put(provider.Job{ID: "newer", Task: "a", Format: provider.Format + 1})
		r.start(backstage.WorkerConfig{}, handle("a", nothing))
		pass(30 * time.Second)
		r.wantLog("level=WARN", `"a job is parked"`, "job=j", "task=new", "queue=default", "no handler of this worker knows the task", "after=1s", "parks=1", "not_logged=0")
		r.wantLog("level=WARN", `"a job is parked"`, "job=newer", "task=a", "needs a newer version")
		if n := strings.Count(r.logs.String(), "a job is parked"); n != 2 {
			r.Errorf("%d lines of parks in half a minute, want one a task:\n%s", n, r.logs)
		}
		pass(10 * time.Minute)
		if n := strings.Count(r.logs.String(), "a job is parked"); n < 10 || n > 24 {
			r.Errorf("%d lines of parks of two tasks in ten minutes, want about one a minute and task", n)
		}
	})
}

// TestSuspectsThatWaitAreLogged, with why they do.
func TestSuspectsThatWaitAreLogged(t *testing.T) {
	inBubble(t, func(r *rig) {
		for i := range 2 {
			r.put(provider.Job{ID: fmt.Sprint("j", i), Task: "a", Counters: provider.Counters{Crashes: 2}})
		}
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { time.Sleep(5 * time.Second); return nil }))
		pass(time.Second)
		r.wantLog("level=WARN", `"a job is parked"`, "task=a", "one at a time")
		r.wantLog("level=INFO", `"a job runs whose workers died"`, "task=a", "queue=default", "crashes=2")
	})
}

func TestStacksAreLogged(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.start(backstage.WorkerConfig{}, handle("a", func(_ context.Context, in string) error {
			if in == "exit" {
				runtime.Goexit()
			}
			panicHere()
			return nil
		}, backstage.Policy{MaxAttempts: 2}))
		r.enqueue(job(task("a"), "panic"))
		r.enqueue(job(task("a"), "exit"))
		pass(time.Hour)
		for _, class := range []string{"class=panic", "class=exit"} {
			r.wantLog("level=WARN", "a job failed and is retried", class, "stack=", "log_test.go")
		}
		r.wantLog("level=ERROR", "a job is dead-lettered", "at the disco", "stack=", "panicHere")
	})
}

func TestAnErrorIsLoggedWithoutAStack(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { return errBoom }))
		r.enqueue(job(task("a"), ""))
		pass(time.Hour)
		if log := r.logs.String(); strings.Contains(log, "stack=") {
			r.Errorf("a stack, and nothing panicked:\n%s", log)
		}
	})
}

func TestSkipsAndLateSuccessesAreLogged(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.start(backstage.WorkerConfig{}, handle("a", func(_ context.Context, in string) error {
			if in == "skip" {
				return backstage.Skip("it is done already")
			}
			time.Sleep(time.Minute)
			return nil
		}, backstage.Policy{Timeout: 30 * time.Second}))
		skipped := r.enqueue(job(task("a"), "skip")).ID
		late := r.enqueue(job(task("a"), "late")).ID
		pass(time.Hour)
		r.wantLog("level=DEBUG", `"a job is skipped"`, "job="+skipped, "task=a", `reason="it is done already"`)
		r.wantLog("level=WARN", "returned nil after its deadline", "job="+late, "task=a", "took=1m0s", "timeout=30s")
	})
}

func TestStopsAreLogged(t *testing.T) {
	inBubble(t, func(r *rig) {
		w := r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { time.Sleep(15 * time.Second); return nil }))
		r.enqueue(job(task("a"), ""))
		pass(time.Second)
		if err := w.stop(); err != nil {
			r.Fatal(err)
		}
		r.wantLog("level=INFO", `"worker stopping: waiting for its handlers"`, "worker="+w.Name(), "handlers=1", "at_most=20s")
		r.wantLog("level=INFO", `"worker stopped"`, "worker="+w.Name())
		if strings.Contains(r.logs.String(), "error=") {
			r.Errorf("a log without an error has one:\n%s", r.logs)
		}
	})
}

// TestWhatTheProviderReportsIsLogged with what it says, and nothing empty.
func TestWhatTheProviderReportsIsLogged(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.start(backstage.WorkerConfig{}, handle("a", nothing))
		r.p.Events.Emit(provider.Event{Provider: "rig", Kind: provider.Disconnected, Err: errBoom})
		r.p.Events.Emit(provider.Event{Provider: "rig", Kind: provider.Reconnected})
		r.p.Events.Emit(provider.Event{Provider: "rig", Kind: provider.Ghost, Queue: "q", Count: 3, Message: "gone"})
		r.wantLog("level=WARN", `msg="provider: disconnected" provider=rig error=boom`+"\n")
		r.wantLog("level=INFO", `msg="provider: reconnected" provider=rig`+"\n")
		r.wantLog("level=WARN", `msg="provider: ghost" provider=rig queue=q count=3 message=gone`+"\n")
	})
}

// TestEventsReadWell when an observer prints them, and show no payload.
func TestEventsReadWell(t *testing.T) {
	t.Parallel()
	j := job(task("shop.Charge"), "4111", backstage.WithID("A-1"))
	for _, row := range []struct {
		event backstage.Event
		want  string
	}{
		{backstage.JobEnqueued{Job: j, Receipt: backstage.Receipt{ID: "A-1", Outcome: backstage.Stored}}, "Job:shop.Charge A-1 Receipt:{ID:A-1 Duplicate:false Outcome:stored"},
		{backstage.JobEnqueued{}, "Job:zero job"},
		{backstage.JobSettled{Settlement: backstage.Retried, Why: provider.ParkedAgain, After: time.Second}, "Settlement:retried Next:0 Why:parked After:1s"},
	} {
		if got := fmt.Sprintf("%+v", row.event); !strings.Contains(got, row.want) || strings.Contains(got, "4111") {
			t.Errorf("%T prints %s, want %q in it", row.event, got, row.want)
		}
	}
}
