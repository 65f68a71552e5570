//go:build unix

package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestABoundedQueueTakesAllMessagesAndEachHasOneEffect(t *testing.T) {
	t.Parallel()
	for _, dedupe := range []bool{true, false} {
		t.Run(fmt.Sprintf("dedupe of submissions %t", dedupe), func(t *testing.T) {
			onEachBounded(t, map[string]int{"q": 4}, func(t *testing.T, s *stage) {
				s.needs(s.provider.Claims != nil || !dedupe, "claims")
				fortyMessages(s, dedupe)
			})
		})
	}
}

// fortyMessages enqueues 40 messages, of which 10 are duplicates.
func fortyMessages(s *stage, dedupe bool) {
	s.t.Helper()
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
	s.worker("q", 2, calm, handle)
	s.worker("q", 2, calm, handle)
	duplicates := 0
	for i := range 40 {
		receipts := s.enqueue(backstage.NewJob(task("q", dedupe), wrapperspb.String(fmt.Sprintf("message-%d", i%30))))
		if receipts[0].Duplicate {
			duplicates++
		}
	}
	s.untilQuiet(time.Minute)
	if want := map[bool]int{true: 10, false: 0}[dedupe]; duplicates != want {
		s.t.Errorf("%d duplicates, want %d", duplicates, want)
	}
	if effects := s.ledger.read(s.t, "effect"); len(effects) != 30 {
		s.t.Errorf("%d effects, want 30", len(effects))
	}
}

func TestAJobThatFindsNoRoomIsRefusedWhenItsTimeIsOver(t *testing.T) {
	onEachBounded(t, map[string]int{"q": 1}, func(t *testing.T, s *stage) {
		s.needs(!s.broker.unbounded, "bounds of queues")
		s.enqueue(job("q", "first"))
		for i := range long(30, 300) { // at any moment of whatever asks for room again and again
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(20+i)*time.Millisecond)
			receipts, err := s.client.Enqueue(ctx, job("q", "second"))
			cancel()
			known := errors.Is(err, backstage.ErrQueueFull) || errors.Is(err, context.DeadlineExceeded)
			if !known || receipts[0].Outcome != backstage.Refused {
				t.Errorf("%v: %v, want refused because the queue is full", receipts[0].Outcome, err)
			}
		}
		if depth, _, _ := s.numbers(); depth != 1 {
			t.Errorf("%d jobs wait, want 1", depth)
		}
	})
}

func TestAChainOnAQueueBoundedToOneEnds(t *testing.T) {
	onEachBounded(t, map[string]int{"q": 1}, func(t *testing.T, s *stage) {
		s.worker("q", 1, calm, deeds{s.ledger}.do)
		s.enqueue(job("q", "a chain q,q,q,"))
		s.untilQuiet(time.Minute)
		s.checkEnds(1, 1, "a", "a.q", "a.q.q", "a.q.q.q")
	})
}

func TestAChainGoesThroughTheQueuesOfItsTasks(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		for _, queue := range []string{"orders", "mail", "urgent"} {
			start(t, s.setup(queue, 1))
		}
		s.enqueue(job("orders", "a chain mail,urgent,orders,"))
		s.untilWritten(time.Minute, "end", "a.mail.urgent.orders", 1)
		s.untilQuiet(time.Minute)
		s.checkEnds(1, 1, "a", "a.mail", "a.mail.urgent", "a.mail.urgent.orders")
		workers := make(map[int]bool)
		for _, e := range s.ledger.read(t, "end") {
			workers[e.PID] = true
		}
		if len(workers) != 3 {
			t.Errorf("%d workers ran the chain, want one for each queue", len(workers))
		}
	})
}

func TestARenameWhileJobsWaitLosesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		jobs, subjects := numbered(20, "q", "old-", "")
		s.enqueue(jobs...)
		renamed := s.setup("q", 4)
		renamed.Name, renamed.Aliases = otherName, []string{taskName}
		start(t, renamed)
		s.untilQuiet(time.Minute)
		s.checkEnds(1, 1, subjects...)
	})
}

func TestAWorkerWithoutTheTaskKeepsNoJobFromOneThatHasIt(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		knowsOther := s.setup("q", 4)
		knowsOther.Name = otherName
		start(t, knowsOther)
		both := s.setup("q", 4)
		both.Aliases = []string{otherName}
		startCrew(t, both, long(3, 1)) // who is alone waits long for the last jobs: each park is longer than the one before
		jobs, subjects := numbered(100, "q", "b-", "")
		for _, j := range jobs {
			s.enqueue(j)
		}
		s.untilQuiet(10 * time.Minute)
		s.checkEnds(1, 1, subjects...)
		s.checkNoneIsDead()
		for _, e := range s.ledger.read(t, "start") {
			if e.Attempt != 1 {
				t.Errorf("%s: attempt %d, want 1: being parked is no failure", e.Subject, e.Attempt)
			}
		}
	})
}

func TestAWorkerTakesNoMoreThanItRuns(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.needs(!s.facts().FixedSlots && s.facts().Death != provider.Session, "jobs that are nobody's before they start")
		queues := []string{"a", "b", "c"}
		for _, queue := range queues {
			jobs, _ := numbered(4, queue, queue, "hang")
			s.enqueue(jobs...)
		}
		both := func(n int) setup {
			c := s.setup("a", n)
			c.More = queues[1:]
			return c
		}
		start(t, both(2))
		s.until(time.Minute, func() (bool, string) {
			n := len(s.ledger.read(t, "start"))
			return n == 2, fmt.Sprintf("%d of 2 slots are taken", n)
		})
		start(t, both(20))
		s.until(s.takeover(), func() (bool, string) {
			n := len(s.ledger.read(t, "start"))
			return n == 12, fmt.Sprintf("%d of 12 jobs are started: somebody keeps what it does not run", n)
		})
		if depth, inFlight, _ := s.numbers(); depth != 0 || inFlight != 12 {
			t.Errorf("%d jobs wait and %d run, want 0 and 12", depth, inFlight)
		}
	})
}

func TestStrictPriorityRunsTheUrgentFirst(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.needs(!s.facts().FixedSlots, "strict priority")
		low, _ := numbered(20, "low", "low-", "")
		urgent, _ := numbered(20, "urgent", "urgent-", "")
		s.enqueue(append(low, urgent...)...)
		strict := s.setup("urgent", 1)
		strict.More, strict.Strict = []string{"low"}, true
		start(t, strict)
		s.untilQuiet(time.Minute)
		for i, e := range s.ledger.read(t, "start") {
			if strings.HasPrefix(e.Subject, "urgent") != (i < 20) {
				t.Fatalf("start %d is of %s", i, e.Subject)
			}
		}
	})
}

func TestABacklogThatIsDueAtOnceRunsOnceEach(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.needs(s.provider.Delays != nil, "delays")
		due := time.Now().Add(3 * time.Second)
		jobs, subjects := numbered(long(500, 20000), "q", "n", "", backstage.At(due))
		s.enqueue(jobs...)
		start(t, s.setup("q", 16))
		start(t, s.setup("q", 16))
		s.untilQuiet(5 * time.Minute)
		s.checkEnds(1, 1, subjects...)
		for _, e := range s.ledger.read(t, "start") {
			if e.At.Before(due.Add(-100 * time.Millisecond)) {
				t.Fatalf("%s started %v early", e.Subject, due.Sub(e.At))
			}
		}
	})
}

func TestAJobThatIsDelayedForLongerThanTheLeaseRunsOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.needs(s.provider.Delays != nil, "delays")
		s.enqueue(job("q", "later", backstage.In(2*s.lease())))
		start(t, s.mortal("q", 4))
		start(t, s.mortal("q", 4))
		s.untilQuiet(time.Minute)
		if starts := s.ledger.read(t, "start"); len(starts) != 1 {
			t.Errorf("%d starts, want 1", len(starts))
		}
	})
}

func TestADeadWorkerDoesNotLockItsOrderingKey(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.needs(s.facts().Ordered, "order per key")
		ordered := task("q", false)
		ordered.OrderingKey = func(payload) (string, error) { return "customer-7", nil }
		for _, value := range []string{"n0 hang", "n1", "n2", "n3"} {
			s.enqueue(backstage.NewJob(ordered, wrapperspb.String(value)))
		}
		first := start(t, s.mortal("q", 4))
		s.untilWritten(time.Minute, "start", "n0", 1)
		first.kill()
		start(t, s.mortal("q", 4))
		s.untilQuiet(s.takeover())
		var order []string
		for _, e := range s.ledger.read(t, "end") {
			order = append(order, e.Subject)
		}
		if got := strings.Join(order, " "); got != "n0 n1 n2 n3" {
			t.Errorf("ended in the order %s", got)
		}
	})
}
