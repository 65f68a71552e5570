//go:build unix

package scenario

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestGarbageInAStreamIsDeadAsBytesAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := onRedis(t)
	const many = 30 // more than a page of anybody's recovery
	for i := range many {
		s.do("XADD", s.stream("q"), "*", "job", fmt.Sprintf("garbage %d", i))
		s.do("XADD", s.stream("q"), "*", "payload", `{"order":"A-1"}`)
	}
	jobs, subjects := numbered(10, "q", "n", "")
	s.enqueue(jobs...)
	start(t, s.setup("q", 2))
	s.untilQuiet(time.Minute)
	s.checkEnds(1, 1, subjects...)
	letters := s.letters(provider.DeadFilter{Class: provider.ClassNoRecord})
	if len(letters) != 2*many {
		t.Errorf("%d dead letters, want %d", len(letters), 2*many)
	}
	for _, letter := range letters {
		if raw := string(letter.Raw); !strings.Contains(raw, "garbage ") && !strings.Contains(raw, "A-1") {
			t.Errorf("a dead letter with the bytes %q", raw)
		}
	}
}

func TestEntriesThatSomebodyDeletedDoNotHoldUpTheRecoveryOfOthers(t *testing.T) {
	t.Parallel()
	s := onRedis(t)
	const many = 300
	jobs, _ := numbered(many, "q", "ghost-", "hang")
	s.enqueue(append(jobs, job("q", "victim hang"))...)
	first := start(t, s.mortal("q", many+1))
	s.until(2*time.Minute, func() (bool, string) {
		n := len(s.ledger.read(t, "start"))
		return n == many+1, fmt.Sprintf("%d of %d are started", n, many+1)
	})
	first.kill()
	entries, err := s.redis.XRange(t.Context(), s.stream("q"), "-", "+").Result()
	if err != nil || len(entries) != many+1 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for _, e := range entries[:many] {
		s.do("XDEL", s.stream("q"), e.ID)
	}
	start(t, s.mortal("q", 2))
	s.untilWritten(s.takeover(), "end", "victim", 1)
	s.until(time.Minute, func() (bool, string) {
		pending, err := s.redis.XPending(t.Context(), s.stream("q"), workers).Result()
		return err == nil && pending.Count == 0, fmt.Sprintf("pending: %+v, %v", pending, err)
	})
	if told := s.ledger.of(t, string(provider.Ghost), "q"); len(told) == 0 {
		t.Error("nobody was told of the ghosts")
	}
}

func TestAGroupThatVanishesIsMadeAnewAndDoneJobsStayDone(t *testing.T) {
	t.Parallel()
	for _, loss := range []struct {
		name   string
		vanish func(*redisStage)
		all    bool // the jobs too, and not their group alone
	}{
		{"XGROUP DESTROY", func(s *redisStage) { s.do("XGROUP", "DESTROY", s.stream("q"), workers) }, false},
		{"DEL", func(s *redisStage) { s.do("DEL", s.stream("q")) }, true},
		{"FLUSHALL and SCRIPT FLUSH", func(s *redisStage) { s.do("FLUSHALL"); s.do("SCRIPT", "FLUSH") }, true},
	} {
		t.Run(loss.name, func(t *testing.T) {
			t.Parallel()
			s := onRedisServer(t)
			start(t, s.mortal("q", 4))
			for round := range long(2, 20) {
				s.lose(round, loss.vanish, loss.all)
			}
			if told := s.ledger.of(t, string(provider.GroupRecreated), "q"); len(told) == 0 {
				t.Error("nobody was told that the group was made anew")
			}
			s.checkNoneIsDead()
		})
	}
}

// lose lets something vanish while a job runs and others are done.
func (s *redisStage) lose(round int, vanish func(*redisStage), all bool) {
	s.t.Helper()
	done, subjects := numbered(20, "q", fmt.Sprintf("done-%d-", round), "")
	s.enqueue(done...)
	s.untilQuiet(time.Minute)
	running, next := fmt.Sprintf("running-%d", round), fmt.Sprintf("next-%d", round)
	s.enqueue(job("q", running+" sleep 1s"))
	s.untilWritten(time.Minute, "start", running, 1)
	vanish(s)
	s.enqueueSoon(job("q", next))
	s.untilWritten(resumes, "end", next, 1)
	if all {
		s.until(resumes, func() (bool, string) {
			ends := len(s.ledger.of(s.t, "end", running)) + len(s.ledger.of(s.t, "fail", running))
			return ends == 1, "the handler of a job that is gone does not end"
		})
	} else {
		s.untilWritten(resumes, "end", running, 1)
	}
	s.untilQuiet(time.Minute)
	s.checkEnds(1, 1, append(subjects, next)...)
}

func TestConnectionsThatTheServerKillsAreMadeAnew(t *testing.T) {
	t.Parallel()
	s := onRedisServer(t)
	w := s.worker("q", 4, s.lease(), deeds{s.ledger}.do)
	start(t, s.mortal("q", 4))
	for i := range long(5, 50) {
		running, after := fmt.Sprintf("running-%d", i), fmt.Sprintf("after-%d", i)
		s.enqueueSoon(job("q", running+" sleep 300ms"))
		s.untilWritten(time.Minute, "start", running, 1)
		s.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		s.enqueueSoon(job("q", after))
		s.untilWritten(resumes, "end", after, 1)
		s.untilWritten(resumes, "end", running, 1)
	}
	s.untilQuiet(time.Minute)
	s.untilHealth(w, true)
	s.checkNoneIsDead()
}

func TestJobsThatAreSettledWhileRedisPausesAreDoneOnce(t *testing.T) {
	t.Parallel()
	s := onRedisServer(t)
	jobs, subjects := numbered(long(100, 1000), "q", "n", fmt.Sprintf("sleep %v", s.lease()-200*time.Millisecond))
	s.enqueue(jobs...)
	start(t, s.mortal("q", 25))
	start(t, s.mortal("q", 25))
	for done := 0; done < len(jobs); {
		s.until(5*time.Minute, func() (bool, string) {
			n := len(s.ledger.read(t, "end"))
			return n > done, fmt.Sprintf("%d of %d ended", n, len(jobs))
		})
		// They end now, and nobody can settle anything for a while.
		s.do("CLIENT", "PAUSE", "1000", "ALL")
		done += 50
	}
	s.untilQuiet(5 * time.Minute)
	s.checkEnds(1, 2, subjects...)
	s.checkNoneIsDead()
	if acked := s.ledger.read(t, "acked"); len(acked) != len(jobs) {
		t.Errorf("%d settlements for %d jobs", len(acked), len(jobs))
	}
	for _, e := range s.ledger.read(t, "start") {
		if e.Attempt != 1 {
			t.Errorf("%s: attempt %d: a pause was counted as a failure", e.Subject, e.Attempt)
		}
	}
}

func TestDeadWorkersLeaveNoConsumers(t *testing.T) {
	t.Parallel()
	s := onRedis(t)
	names := make(map[string]bool)
	for i := range long(4, 20) {
		subject := fmt.Sprintf("victim-%d", i)
		s.enqueue(job("q", subject+" hang"))
		w := start(t, s.mortal("q", 1))
		s.untilWritten(s.takeover(), "start", subject, 1)
		for _, name := range s.consumers("q") {
			names[name] = true
		}
		w.kill()
	}
	if len(names) < long(4, 20) {
		t.Errorf("consumers had the names %v, want one of its own for each process", names)
	}
	start(t, s.mortal("q", 4))
	s.untilQuiet(2 * time.Minute)
	s.checkNoneIsDead()
	if long(0, 1) == 0 {
		return // they go when they have been silent for a minute
	}
	s.until(3*time.Minute, func() (bool, string) {
		left := s.consumers("q")
		return len(left) <= 2, fmt.Sprintf("consumers: %v", left)
	})
}

func TestFinishedJobsLeaveNothingInRedis(t *testing.T) {
	t.Parallel()
	s := onRedis(t)
	for i := range long(100, 2000) {
		s.enqueue(job("q", fmt.Sprintf("n%d", i)),
			job("q", fmt.Sprintf("later%d", i), backstage.In(time.Millisecond)),
			job("q", fmt.Sprintf("flaky%d flaky 2", i)),
			backstage.NewJob(untilDone("q"), wrapperspb.String(fmt.Sprintf("once%d chain q,", i))))
	}
	start(t, s.setup("q", 16))
	s.untilQuiet(5 * time.Minute)
	const most = 4 // a name of the queue here, a generation there
	keys := s.redis.Scan(t.Context(), 0, "{"+s.in+"}:*", 1000).Iterator()
	n := 0
	for keys.Next(t.Context()) {
		n++
		if size := s.size(keys.Val()); size > most {
			t.Errorf("%s has %d elements", keys.Val(), size)
		}
	}
	if err := keys.Err(); err != nil || n > 20 {
		t.Errorf("%d keys are left, %v", n, err)
	}
}

// size returns how many elements a key has.
func (s *redisStage) size(key string) int64 {
	s.t.Helper()
	kind, err := s.redis.Type(s.t.Context(), key).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	var size *redis.IntCmd
	switch kind {
	case "stream":
		size = s.redis.XLen(s.t.Context(), key)
	case "zset":
		size = s.redis.ZCard(s.t.Context(), key)
	case "hash":
		size = s.redis.HLen(s.t.Context(), key)
	case "set":
		size = s.redis.SCard(s.t.Context(), key)
	case "list":
		size = s.redis.LLen(s.t.Context(), key)
	default:
		return 1
	}
	if err := size.Err(); err != nil {
		s.t.Fatal(err)
	}
	return size.Val()
}
