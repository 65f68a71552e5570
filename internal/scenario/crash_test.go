//go:build unix

package scenario

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

func TestAKilledWorkersJobStartsElsewhere(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		pair := startCrew(t, s.mortal("q", 2), 2)
		var longest time.Duration
		for i := range long(2, 20) {
			subject := fmt.Sprintf("victim-%d", i)
			s.enqueue(job("q", subject+" hang", backstage.WithMaxAttempts(1))) // to die is no attempt
			first := s.untilWritten(time.Minute, "start", subject, 1)[0]
			killed := time.Now()
			pair.member(first).kill()
			second := s.untilWritten(s.takeover(), "start", subject, 2)[1]
			longest = max(longest, second.At.Sub(killed))
			if second.PID == first.PID || second.Crashes != 1 || second.Attempt != 1 {
				t.Errorf("second start: %+v, want elsewhere, with one crash and no failure", second)
			}
			s.untilQuiet(time.Minute)
			pair.replace()
		}
		t.Logf("from a kill to the second start: %v at most, with a lease of %v", longest, s.lease())
		s.checkNoneIsDead()
	})
}

func TestAJobThatOutlivesItsLeaseRunsOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.enqueue(job("q", fmt.Sprintf("long sleep %v", 5*s.lease())))
		start(t, s.mortal("q", 1))
		start(t, s.mortal("q", 1))
		s.untilQuiet(time.Minute)
		if starts := s.ledger.read(t, "start"); len(starts) != 1 {
			t.Errorf("%d starts, want 1: the heartbeat keeps the lease", len(starts))
		}
		s.checkNoneIsDead()
	})
}

func TestAStoppedWorkerLosesItsJobAndChangesNothingWhenItGoesOn(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		receipts := s.enqueue(job("q", "stopped sleep 1s"))
		first := start(t, s.mortal("q", 1))
		s.untilWritten(time.Minute, "start", "stopped", 1)
		first.signal(syscall.SIGSTOP)
		second := start(t, s.mortal("q", 1))
		s.untilWritten(s.takeover(), "end", "stopped", 1)
		first.signal(syscall.SIGCONT)
		s.until(time.Minute, func() (bool, string) {
			return len(s.ledger.read(t, "end"))+len(s.ledger.read(t, "fail")) == 2, "the stopped handler does not go on"
		})
		for _, p := range []*process{first, second} {
			p.signal(syscall.SIGTERM)
			if err := p.wait(); err != nil {
				t.Errorf("worker %d: %v", p.pid(), err)
			}
		}
		starts := s.ledger.read(t, "start")
		if len(starts) != 2 || starts[1].Crashes != 1 || starts[1].Attempt != 1 {
			t.Errorf("starts = %+v, want a second one with one crash and no failure", starts)
		}
		if s.facts().RefusesLate {
			lost, acked := s.ledger.read(t, "lost"), s.ledger.read(t, "acked")
			if len(lost) != 1 || lost[0].PID != first.pid() {
				t.Errorf("lost = %+v, want a report of the stopped worker", lost)
			}
			if len(acked) != 1 || acked[0].PID != second.pid() {
				t.Errorf("acked = %+v, want one settlement, of the second worker", acked)
			}
		}
		s.untilQuiet(time.Minute)
		if letter, dead := s.dead()[receipts[0].ID]; dead {
			t.Errorf("dead-lettered: %+v", letter.Failure)
		}
	})
}

func TestAJobThatKillsItsProcessIsDeadLetteredAloneAfterFiveStarts(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.needs(s.facts().ExactCrashes, "exact number of crashes")
		jobs, subjects := numbered(100, "q", "n", "sleep 20ms")
		killer := job("q", "killer exit")
		s.enqueue(append(append(jobs[:50:50], killer), jobs[50:]...)...)

		crashes := 0
		w := startCrew(t, s.mortal("q", 20), 1)
		s.until(5*time.Minute, func() (bool, string) {
			crashes += w.replace()
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
		s.checkTheInnocent(subjects, starts)
	})
}

// checkTheInnocent says what holds for those who ran beside a killer.
func (s *stage) checkTheInnocent(subjects []string, starts map[string]int) {
	s.t.Helper()
	died := make(map[int]time.Time) // when processes died, by pid
	for _, e := range s.ledger.of(s.t, "start", "killer") {
		died[e.PID] = e.At
	}
	ended := make(map[string]int)
	for _, e := range s.ledger.read(s.t, "end") {
		ended[e.Subject]++
		if crash, ok := died[e.PID]; ok && crash.Sub(e.At) > time.Second && s.ledger.startedAfter(s.t, e) {
			s.t.Errorf("%s ended %v before the crash and was started again", e.Subject, crash.Sub(e.At))
		}
	}
	for _, subject := range subjects {
		if ended[subject] < 1 || starts[subject] > 3 {
			s.t.Errorf("%s: %d starts, %d ends; want at least one end and at most three starts", subject, starts[subject], ended[subject])
		}
	}
}

func TestAllThatADeadWorkerHeldIsTakenOverAsSlotsGetFree(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		// More than a page of any recovery, and among them one that is slow. With a
		// pause after each page these would take minutes.
		const slots = 4
		many := long(200, 1000)
		jobs, subjects := numbered(many, "q", "n", "hang")
		s.enqueue(append(jobs, job("q", "slow hang 5s"))...)
		first := start(t, s.mortal("q", many+1))
		s.until(2*time.Minute, func() (bool, string) {
			n := len(s.ledger.read(t, "start"))
			return n == many+1, fmt.Sprintf("%d of %d jobs are started", n, many+1)
		})
		first.kill()
		second := start(t, s.mortal("q", slots))
		s.until(s.takeover(), func() (bool, string) {
			n := len(s.ledger.read(t, "start")) - many - 1
			return n == many+1, fmt.Sprintf("%d of %d jobs are taken over", n, many+1)
		})
		s.untilQuiet(time.Minute)
		s.checkEnds(1, 1, append(subjects, "slow")...)
		if n := s.ledger.most(t, second.pid()); n > slots {
			t.Errorf("%d handlers ran at once in %d slots", n, slots)
		}
	})
}

func TestJobsThatWaitForARetryDoNotHoldUpTheRecoveryOfOthers(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		waits := backstage.WithBackoff(backstage.Backoff{Base: time.Hour, Cap: time.Hour})
		jobs, _ := numbered(100, "q", "waits-", "down", waits)
		s.enqueue(jobs...)
		first := start(t, s.mortal("q", 4))
		s.until(time.Minute, func() (bool, string) {
			_, _, held := s.numbers()
			return held == 100, fmt.Sprintf("%d of 100 wait for their retry", held)
		})
		s.enqueue(job("q", "victim hang"))
		s.untilWritten(time.Minute, "start", "victim", 1)
		first.kill()
		start(t, s.mortal("q", 4))
		s.untilWritten(s.takeover(), "end", "victim", 1)
	})
}

func TestNothingIsLostWhenWorkersAreScaledInByKills(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		jobs, subjects := numbered(long(200, 2000), "q", "n", "sleep 30ms")
		s.enqueue(jobs...)
		crew := startCrew(t, s.mortal("q", 4), 5)
		for _, p := range crew.members[1:] {
			s.until(time.Minute, func() (bool, string) {
				for _, e := range s.ledger.read(t, "start") {
					if e.PID == p.pid() {
						return true, ""
					}
				}
				depth, _, _ := s.numbers()
				return depth == 0, "a worker does not work"
			})
			p.kill()
		}
		s.untilQuiet(5 * time.Minute)
		s.checkEnds(1, 5, subjects...)
		s.checkNoneIsDead()
	})
}

func TestAChainWhoseWorkerDiesBeforeItsAckGoesOnUnderOneID(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		crew := startCrew(t, s.mortal("q", 1), 4)
		jobs, _ := numbered(long(8, 200), "q", "n", "chain q,", backstage.Header(dies, "once"))
		s.enqueue(jobs...)
		kills := 0
		s.until(20*time.Minute, func() (bool, string) {
			kills += crew.replace()
			return s.quiet()
		})
		if kills < len(jobs) {
			t.Errorf("%d kills, want one for each of %d chains", kills, len(jobs))
		}
		most := 2
		if !s.facts().AtomicHandoff { // any death may come between the next job and the ack
			most = 1 + kills
		}
		children := make(map[string]map[string]int) // ends by child and id
		for _, e := range s.ledger.read(t, "end") {
			if children[e.Subject] == nil {
				children[e.Subject] = make(map[string]int)
			}
			children[e.Subject][e.Job]++
		}
		for i := range jobs {
			subject := fmt.Sprintf("n%d.q", i)
			if ids := children[subject]; len(ids) != 1 {
				t.Errorf("%s ended under the ids %v, want one", subject, ids)
			}
			s.checkEnds(1, most, subject)
		}
		s.checkNoneIsDead()
	})
}
