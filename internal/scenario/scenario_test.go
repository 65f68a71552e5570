//go:build unix

package scenario

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestTheFourCases(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	receipts := s.enqueue(job("q", "ok"), job("q", "flaky flaky 3"), job("q", "bad bad"), job("q", "down down"))
	start(t, s.setup("q", 4))
	s.untilQuiet(time.Minute)

	starts := s.ledger.bySubject(t, "start")
	for subject, want := range map[string]int{"ok": 1, "flaky": 3, "bad": 1, "down": 5} {
		if starts[subject] != want {
			t.Errorf("%s: %d starts, want %d", subject, starts[subject], want)
		}
	}
	dead := s.dead()
	if len(dead) != 2 {
		t.Fatalf("%d dead letters, want bad and down", len(dead))
	}
	for i, want := range map[int]provider.Failure{
		2: {Class: provider.ClassPermanent, Message: "unknown account", Attempt: 1},
		3: {Class: provider.ClassExhausted, Message: "503", Attempt: 5},
	} {
		got := dead[receipts[i].ID].Failure
		if got.Class != want.Class || got.Message != want.Message || got.Attempt != want.Attempt {
			t.Errorf("dead letter %d: %+v, want %+v", i, got, want)
		}
	}
}

func TestABoundedQueueTakesAllMessagesAndEachHasOneEffect(t *testing.T) {
	t.Parallel()
	for _, dedupe := range []bool{true, false} {
		t.Run(fmt.Sprintf("dedupe of submissions %t", dedupe), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "?bound.q=4")
			var mu sync.Mutex
			table := make(map[string]bool) // the handler's own
			handle := func(_ context.Context, in payload, _ *backstage.Next) error {
				mu.Lock()
				defer mu.Unlock()
				if !dedupe && table[subject(in)] {
					return nil
				}
				table[subject(in)] = true
				s.ledger.write(entry{What: "effect", Subject: subject(in)})
				return nil
			}
			s.worker("q", 2, handle)
			s.worker("q", 2, handle)
			duplicates := 0
			for i := range 40 {
				receipts := s.enqueue(backstage.NewJob(task("q", dedupe), wrapperspb.String(fmt.Sprintf("message-%d", i%30))))
				if receipts[0].Duplicate {
					duplicates++
				}
			}
			s.untilQuiet(time.Minute)
			if want := map[bool]int{true: 10, false: 0}[dedupe]; duplicates != want {
				t.Errorf("%d duplicates, want %d", duplicates, want)
			}
			if effects := s.ledger.read(t, "effect"); len(effects) != 30 {
				t.Errorf("%d effects, want 30", len(effects))
			}
		})
	}
}

func TestAChainOnAQueueBoundedToOneEnds(t *testing.T) {
	t.Parallel()
	s := newStage(t, "?bound.q=1")
	s.worker("q", 1, deeds{s.ledger}.do)
	s.enqueue(job("q", "a chain q,q,q,"))
	s.untilQuiet(time.Minute)
	ends := s.ledger.bySubject(t, "end")
	for _, step := range []string{"a", "a.q", "a.q.q", "a.q.q.q"} {
		if ends[step] != 1 {
			t.Errorf("step %s ended %d times, want once", step, ends[step])
		}
	}
}

func TestAJobThatOutlivesItsLeaseRunsOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.enqueue(job("q", fmt.Sprintf("long sleep %v", 4*lease)))
	start(t, s.setup("q", 1))
	start(t, s.setup("q", 1))
	s.untilQuiet(time.Minute)
	if starts := s.ledger.read(t, "start"); len(starts) != 1 {
		t.Errorf("%d starts, want 1: the heartbeat keeps the lease", len(starts))
	}
}

func TestAStoppedWorkerLosesItsJobAndChangesNothingWhenItGoesOn(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	receipts := s.enqueue(job("q", "stopped sleep 1s"))
	first := start(t, s.setup("q", 1))
	s.until(time.Minute, func() (bool, string) {
		return len(s.ledger.read(t, "start")) == 1, "the job does not start"
	})
	first.signal(syscall.SIGSTOP)
	second := start(t, s.setup("q", 1))
	s.until(takeover, func() (bool, string) {
		return len(s.ledger.read(t, "end")) == 1, "no second worker finishes the job"
	})
	first.signal(syscall.SIGCONT)
	s.until(time.Minute, func() (bool, string) {
		return len(s.ledger.read(t, "end"))+len(s.ledger.read(t, "fail")) == 2, "the stopped handler does not go on"
	})
	for _, p := range []*process{first, second} {
		p.signal(syscall.SIGTERM)
		if err := p.wait(); err != nil {
			t.Errorf("worker %d: %v", p.cmd.Process.Pid, err)
		}
	}
	starts := s.ledger.read(t, "start")
	if len(starts) != 2 || starts[1].Crashes != 1 || starts[1].Attempt != 1 {
		t.Errorf("starts = %+v, want a second one with one crash and no failure", starts)
	}
	s.untilQuiet(time.Minute)
	if letter, dead := s.dead()[receipts[0].ID]; dead {
		t.Errorf("dead-lettered: %+v", letter.Failure)
	}
}

func TestAJobThatKillsItsProcessIsDeadLetteredAloneAfterFiveStarts(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	jobs := []backstage.Job{}
	for i := range 50 {
		jobs = append(jobs, job("q", fmt.Sprintf("n%d sleep 20ms", i)))
	}
	killer := job("q", "killer exit")
	jobs = append(jobs, killer)
	for i := range 50 {
		jobs = append(jobs, job("q", fmt.Sprintf("n%d sleep 20ms", 50+i)))
	}
	s.enqueue(jobs...)

	crashes := 0
	w := start(t, s.setup("q", 20))
	s.until(5*time.Minute, func() (bool, string) {
		if !w.alive() {
			crashes++
			w = start(t, s.setup("q", 20))
		}
		_, dead := s.dead()[killer.ID()]
		return dead, fmt.Sprintf("the killer is not dead-lettered after %d crashes", crashes)
	})
	s.untilQuiet(time.Minute)

	starts := s.ledger.bySubject(t, "start")
	if starts["killer"] != 5 || crashes != 5 {
		t.Errorf("the killer started %d times in %d processes, want exactly 5", starts["killer"], crashes)
	}
	dead := s.dead()
	if letter := dead[killer.ID()]; letter.Failure.Class != provider.ClassCrashed {
		t.Errorf("the killer is dead as %q, want crashed", letter.Failure.Class)
	}
	if len(dead) != 1 {
		t.Errorf("%d dead letters, want the killer alone", len(dead))
	}
	died := make(map[int]time.Time) // when processes died, by pid
	for _, e := range s.ledger.read(t, "start") {
		if e.Subject == "killer" {
			died[e.PID] = e.At
		}
	}
	ended := make(map[string]int)
	for _, e := range s.ledger.read(t, "end") {
		ended[e.Subject]++
		if crash, ok := died[e.PID]; ok && crash.Sub(e.At) > time.Second && s.startedAfter(t, e) {
			t.Errorf("%s ended %v before the crash and was started again", e.Subject, crash.Sub(e.At))
		}
	}
	for i := range 100 {
		subject := fmt.Sprintf("n%d", i)
		if ended[subject] < 1 || starts[subject] > 3 {
			t.Errorf("%s: %d starts, %d ends; want at least one end and at most three starts", subject, starts[subject], ended[subject])
		}
	}
}

func TestSIGTERMUnderLoadLosesNothingAndCountsNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	ctx, stop := context.WithCancel(t.Context())
	var producing sync.WaitGroup
	var mu sync.Mutex
	accepted := make(map[string]bool)
	for p := range 4 {
		producing.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				j := job("q", fmt.Sprintf("p%d-%d sleep 15ms", p, i))
				if receipts, err := s.client.Enqueue(ctx, j); err == nil {
					mu.Lock()
					accepted[receipts[0].ID] = true
					mu.Unlock()
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	for range long(3, 50) {
		before := len(s.ledger.read(t, "start"))
		w := start(t, s.setup("q", 16))
		s.until(time.Minute, func() (bool, string) {
			return len(s.ledger.read(t, "start")) > before+100, "the worker does not work"
		})
		w.signal(syscall.SIGTERM)
		if err := w.wait(); err != nil {
			t.Fatalf("worker: %v; want all settled", err)
		}
	}
	stop()
	producing.Wait()
	start(t, s.setup("q", 16))
	s.untilQuiet(5 * time.Minute)

	ran := make(map[string]int)
	for _, e := range s.ledger.read(t, "start") {
		ran[e.Job]++
		if e.Attempt != 1 || e.Crashes != 0 {
			t.Errorf("job %s started with attempt %d and %d crashes: a shutdown was counted against it", e.Job, e.Attempt, e.Crashes)
		}
	}
	for id := range accepted {
		if ran[id] == 0 {
			t.Errorf("job %s was accepted and never ran", id)
		}
	}
	if dead := s.dead(); len(dead) != 0 {
		t.Errorf("%d dead letters, want none", len(dead))
	}
}

func TestARenameWhileJobsWaitLosesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	for i := range 20 {
		s.enqueue(job("q", fmt.Sprintf("old-%d", i)))
	}
	renamed := s.setup("q", 4)
	renamed.Name, renamed.Aliases = otherName, []string{taskName}
	start(t, renamed)
	s.untilQuiet(time.Minute)
	if ends := s.ledger.bySubject(t, "end"); len(ends) != 20 {
		t.Errorf("%d of 20 jobs under the old name ran", len(ends))
	}
}

func TestAWorkerWithoutTheTaskKeepsNoJobFromOneThatHasIt(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	knowsOther := s.setup("q", 4)
	knowsOther.Name = otherName
	start(t, knowsOther)
	both := s.setup("q", 4)
	both.Aliases = []string{otherName}
	start(t, both)
	for i := range 100 {
		s.enqueue(job("q", fmt.Sprintf("b-%d", i)))
	}
	s.untilQuiet(2 * time.Minute)
	ends := s.ledger.bySubject(t, "end")
	if len(ends) != 100 {
		t.Errorf("%d of 100 jobs ran", len(ends))
	}
	for _, e := range s.ledger.read(t, "start") {
		if e.Attempt != 1 {
			t.Errorf("%s: attempt %d, want 1: being parked is no failure", e.Subject, e.Attempt)
		}
	}
}
