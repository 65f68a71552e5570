//go:build unix

package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestTheFourCases(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
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
			letter := dead[receipts[i].ID]
			got := letter.Failure
			if got.Class != want.Class || got.Message != want.Message || got.Attempt != want.Attempt {
				t.Errorf("dead letter %d: %+v, want %+v", i, got, want)
			}
			if letter.Queue != "q" || letter.Job.Task != taskName || got.Worker == "" || letter.At.IsZero() || len(letter.Job.History) != int(want.Attempt) {
				t.Errorf("dead letter %d does not say where, who, when and how often: %+v", i, letter)
			}
		}
	})
}

func TestMaxAttemptsIsTheNumberOfRuns(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		want := make(map[string]int)
		for _, n := range []int{1, 2, 5} {
			for _, deed := range []string{"down", "panic"} {
				subject := fmt.Sprintf("%s-%d", deed, n)
				want[subject] = n
				s.enqueue(job("q", subject+" "+deed, backstage.WithMaxAttempts(n)))
			}
		}
		s.enqueue(job("q", "patient snooze 7", backstage.WithMaxAttempts(1)))
		start(t, s.setup("q", 4))
		s.untilQuiet(time.Minute)
		starts := s.ledger.bySubject(t, "start")
		for subject, n := range want {
			if starts[subject] != n {
				t.Errorf("%s: %d starts, want %d", subject, starts[subject], n)
			}
		}
		if dead := s.dead(); len(dead) != len(want) {
			t.Errorf("%d dead letters, want %d", len(dead), len(want))
		}
		s.checkEnds(1, 1, "patient") // a snooze is no attempt
	})
}

func TestAJobThatDidNotStartInTimeIsDeadAndNeverRuns(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		receipts := s.enqueue(job("q", "late", backstage.WithExpires(time.Second)))
		s.enqueue(job("q", "patient"))
		deadline := time.Now().Add(2 * time.Second)
		s.until(time.Minute, func() (bool, string) { return time.Now().After(deadline), "time stands still" })
		start(t, s.setup("q", 2))
		s.untilQuiet(time.Minute)
		if starts := s.ledger.bySubject(t, "start"); starts["late"] != 0 || starts["patient"] != 1 {
			t.Errorf("starts = %v, want patient alone", starts)
		}
		if letter := s.dead()[receipts[0].ID]; letter.Failure.Class != provider.ClassExpired {
			t.Errorf("dead as %q, want expired", letter.Failure.Class)
		}
	})
}

func TestAHandlerThatIgnoresItsDeadlineIsReportedAndNotRunBesideItself(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.enqueue(job("q", "deaf deaf "+(2*s.lease()).String(), backstage.WithTimeout(500*time.Millisecond)))
		start(t, s.mortal("q", 4))
		start(t, s.mortal("q", 4))
		s.untilQuiet(time.Minute)
		if stuck := s.ledger.read(t, "stuck"); len(stuck) != 1 {
			t.Errorf("reported as stuck %d times, want once", len(stuck))
		}
		if starts := s.ledger.read(t, "start"); len(starts) != 1 {
			t.Errorf("%d starts, want 1: it returned nil in the end", len(starts))
		}
	})
}

func TestAPayloadThatNoLongerDecodesIsDeadWithItsBytes(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		old := backstage.Task[*wrapperspb.BytesValue]{Name: taskName, Queue: "q"}
		receipts := s.enqueue(backstage.NewJob(old, wrapperspb.Bytes([]byte{0xff, 0xfe})))
		jobs, subjects := numbered(10, "q", "n", "")
		s.enqueue(jobs...)
		start(t, s.setup("q", 1))
		s.untilQuiet(time.Minute)
		letter := s.dead()[receipts[0].ID]
		if letter.Failure.Class != provider.ClassUndecodable || !strings.Contains(string(letter.Job.Payload), "\xff\xfe") {
			t.Errorf("dead as %q with payload %q, want undecodable with its bytes", letter.Failure.Class, letter.Job.Payload)
		}
		s.checkEnds(1, 1, subjects...)
	})
}

func TestADelayedJobKeepsItsQueueAndItsPolicy(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.needs(s.provider.Delays != nil, "delays")
		receipts := s.enqueue(job("special", "down down", backstage.In(500*time.Millisecond), backstage.WithMaxAttempts(2)))
		start(t, s.setup("special", 1))
		start(t, s.setup(backstage.DefaultQueue, 1))
		s.untilQuiet(time.Minute)
		if starts := s.ledger.read(t, "start"); len(starts) != 2 {
			t.Errorf("%d starts, want the 2 that its enqueue asked for", len(starts))
		}
		letter := s.dead()[receipts[0].ID]
		if letter.Queue != "special" || letter.Job.Overrides.MaxAttempts != 2 {
			t.Errorf("dead in queue %q with %d attempts at most, want special and 2", letter.Queue, letter.Job.Overrides.MaxAttempts)
		}
	})
}

func TestAReplayedJobStartsAgainWithItsOwnPolicy(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.needs(s.provider.Dead != nil, "dead letters")
		receipts := s.enqueue(job("q", "down down", backstage.WithMaxAttempts(2)))
		start(t, s.setup("q", 1))
		id := receipts[0].ID
		for round := 1; round <= 2; round++ {
			s.untilQuiet(time.Minute)
			starts := s.ledger.read(t, "start")
			if len(starts) != 2*round {
				t.Fatalf("%d starts after round %d, want 2 each", len(starts), round)
			}
			if last := starts[len(starts)-1]; last.Attempt != 2 || last.Job != id {
				t.Errorf("the last start is attempt %d of job %s, want 2 of %s", last.Attempt, last.Job, id)
			}
			if round == 2 {
				break
			}
			replayed, err := backstage.Replay(t.Context(), s.provider, s.dead()[id].Address)
			if err != nil || replayed[0].Outcome != backstage.Stored {
				t.Fatalf("replay: %+v, %v", replayed, err)
			}
		}
		letters := s.letters(provider.DeadFilter{JobID: id})
		if len(letters) != 1 || len(letters[0].Job.Replays) != 1 || len(letters[0].Job.History) != 4 {
			t.Errorf("letters = %+v, want one with a replay and all four failures", letters)
		}
	})
}

func TestNoDeadLetterIsTrimmed(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.needs(s.provider.Dead != nil, "dead letters")
		many := long(1001, 10001)
		jobs, _ := numbered(many, "q", "n", "")
		for part := range slices.Chunk(jobs, 500) {
			s.enqueue(part...)
		}
		s.worker("q", 64, calm, func(context.Context, payload, *backstage.Next) error {
			return backstage.Permanent(errors.New("no"))
		})
		s.untilQuiet(10 * time.Minute)
		letters := s.dead()
		for _, j := range jobs {
			if _, ok := letters[j.ID()]; !ok {
				t.Fatalf("job %s is not among %d dead letters", j.ID(), len(letters))
			}
		}
	})
}

// untilDone makes the key of a job hold until its outcome.
func untilDone(queue string) backstage.Task[payload] {
	t := task(queue, true)
	t.DedupeUntilDone = true
	return t
}

func TestAKeyIsFreeHoweverItsJobEnded(t *testing.T) {
	onEachBounded(t, map[string]int{"full": 1}, func(t *testing.T, s *stage) {
		s.needs(s.provider.Claims != nil, "claims")
		s.worker("q", 4, calm, deeds{s.ledger}.do)
		add := func(queue, value string, opts ...backstage.EnqueueOption) (backstage.Receipt, error) {
			return backstage.Enqueue(t.Context(), s.client, backstage.NewJob(untilDone(queue), wrapperspb.String(value), opts...))
		}
		for end, deed := range map[string]string{"done": "done", "skipped": "skipped skip", "dead": "dead bad"} {
			if _, err := add("q", deed); err != nil {
				t.Fatal(err)
			}
			s.untilQuiet(time.Minute)
			if again, err := add("q", deed); err != nil || again.Duplicate {
				t.Errorf("%s: the key is not free: %+v, %v", end, again, err)
			}
		}
		held, err := add("q", "held", backstage.In(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if second, err := add("q", "held"); err != nil || !second.Duplicate || second.ID != held.ID {
			t.Errorf("a second submission: %+v, %v; want a duplicate of %s", second, err, held.ID)
		}
		if cancelled, err := s.client.Cancel(t.Context(), held.ID); err != nil || !cancelled {
			t.Errorf("cancel: %t, %v", cancelled, err)
		}
		if again, err := add("q", "held"); err != nil || again.Duplicate {
			t.Errorf("cancelled: the key is not free: %+v, %v", again, err)
		}
		s.untilQuiet(time.Minute)
		s.checkRefusalTakesNoKey()
	})
}

// checkRefusalTakesNoKey fills a queue that is bounded to one, so that a job is
// refused, and enqueues the same again where there is room.
func (s *stage) checkRefusalTakesNoKey() {
	s.t.Helper()
	if s.broker.unbounded {
		return
	}
	s.enqueue(job("full", "first"))
	refused := backstage.NewJob(untilDone("full"), wrapperspb.String("refused"))
	s.until(time.Minute, func() (bool, string) {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
		defer cancel()
		_, err := backstage.Enqueue(ctx, s.client, refused)
		return errors.Is(err, backstage.ErrQueueFull), fmt.Sprintf("a second job in a queue bounded to one: %v, want ErrQueueFull", err)
	})
	again := backstage.NewJob(untilDone("q"), wrapperspb.String("refused"))
	if r, err := backstage.Enqueue(s.t.Context(), s.client, again); err != nil || r.Duplicate {
		s.t.Errorf("refused: the key is not free: %+v, %v", r, err)
	}
}

func TestADedupeKeyIsItsTasksOwnAndNamesItsHolder(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.needs(s.provider.Claims != nil, "claims")
		one, other := task("q", true), task("q", true)
		other.Name = otherName
		first := s.enqueue(backstage.NewJob(one, wrapperspb.String("A-1")))[0]
		second := s.enqueue(backstage.NewJob(other, wrapperspb.String("A-1")))[0]
		third := s.enqueue(backstage.NewJob(one, wrapperspb.String("A-1")))[0]
		if second.Duplicate || !third.Duplicate || third.ID != first.ID {
			t.Errorf("receipts = %+v, %+v, %+v; want the third alone a duplicate, of the first", first, second, third)
		}
	})
}
