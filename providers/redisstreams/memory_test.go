package redisstreams

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// TestOutOfMemory fills Redis to its limit. It takes no more jobs, says so, and leaves
// no claim behind; what was accepted is settled in every way, held and promoted.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server := brokers.RequireRedis(t, brokers.RedisOptions{Args: []string{"--maxmemory-policy", "noeviction"}})
	s := openStore(t, Config{URL: "redis://" + server.Addr()})
	events := s.observe(t)
	operator := admin(t, server.Addr())
	s.stores(t, jobs(8, "")...)
	s.stores(t, job("later", in(300*time.Millisecond)))
	sub := s.worker(t, time.Second, "q")
	runs := sub.takes(t, 8)
	if err := operator.ConfigSet(t.Context(), "maxmemory", "1kb").Err(); err != nil {
		t.Fatal(err)
	}

	for _, refused := range []provider.Job{job("new"), job("new", in(time.Hour)), job("new", untilDone("key"))} {
		r := s.Publish(t.Context(), []provider.Job{refused}, provider.PublishOptions{})[0]
		if why, known := refusalOf(r.Err); r.Outcome != provider.OutcomeRefused || !known || why.word != "OOM" {
			t.Errorf("publish to a full server: %s, %v; want it refused for OOM", r.Outcome, r.Err)
		}
	}
	if err := s.health(t.Context()); err == nil || !strings.Contains(err.Error(), "maxmemory") {
		t.Errorf("health of a full server: %v", err)
	}
	if !events.has(provider.Blocked) {
		t.Errorf("nothing was reported")
	}
	for what, err := range map[string]error{
		"ack":           runs[0].Ack(t.Context(), nil),
		"ack with next": runs[1].Ack(t.Context(), []provider.Job{job("next", onQueue("other")), job("held next", in(time.Hour))}),
		"retry":         runs[2].Retry(t.Context(), provider.Again{Why: provider.FailedAgain}),
		"retry later":   runs[3].Retry(t.Context(), provider.Again{Why: provider.FailedAgain, After: time.Hour}),
		"dead letter":   runs[4].DeadLetter(t.Context(), failure("permanent", "no")),
		"release":       runs[5].Release(t.Context()),
		"heartbeat":     sub.Extend(t.Context(), runs[6:7])[0],
	} {
		if err != nil {
			t.Errorf("%s on a full server: %v", what, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = s.provider.Delays.Promote(ctx, nil) }()
	// The retry, the release, the held one, and the one whose lease runs out.
	got := s.worker(t, time.Minute, "q").takes(t, 4)
	ack(t, got...)

	if err := operator.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	s.stores(t, job("another", untilDone("key"))) // what was refused has left no claim
	if !events.has(provider.Unblocked) {
		t.Errorf("its end was not reported")
	}
	if letters, _, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{}, ""); err != nil || len(letters) != 1 {
		t.Errorf("%d dead letters, %v; want 1", len(letters), err)
	}
}

// usedMemory is what Redis' data and the rest use.
func usedMemory(t *testing.T, c *redis.Client) int64 {
	t.Helper()
	if err := c.Do(t.Context(), "MEMORY", "PURGE").Err(); err != nil {
		t.Fatal(err)
	}
	info := make(map[string]string)
	readInfo(info, c.Info(t.Context(), "memory").Val())
	n, err := strconv.ParseInt(info["used_memory"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNothingGrowsWithTheWorkDone runs jobs through, with retries, claims and dead
// letters that are discarded, and looks at what is left: as many keys as before, and as
// much memory.
func TestNothingGrowsWithTheWorkDone(t *testing.T) {
	t.Parallel()
	server := brokers.RequireRedis(t, brokers.RedisOptions{})
	s := openStore(t, Config{URL: "redis://" + server.Addr(), Namespace: "growth"})
	operator := admin(t, server.Addr())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = s.provider.Delays.Promote(ctx, nil) }()
	round := func(n int) {
		for i := 0; i < n; i += 500 {
			list := jobs(500, fmt.Sprintf("%d.", i))
			for j := range list {
				switch j % 10 {
				case 0:
					list[j].Dedupe = provider.Dedupe{Key: list[j].ID, UntilDone: true}
				case 1:
					list[j].Dedupe = provider.Dedupe{Key: list[j].ID, For: time.Millisecond}
				case 2:
					list[j].Delay = time.Millisecond
				}
			}
			s.stores(t, list...)
			sub := s.worker(t, time.Minute, "q")
			var wg sync.WaitGroup
			for left := 500; left > 0; {
				got := sub.takes(t, min(left, 100))
				for _, d := range got {
					settle := func() error { return d.Ack(t.Context(), nil) }
					switch {
					case d.Job().Counters.Failures == 0 && strings.HasSuffix(d.Job().ID, "3"):
						settle = func() error {
							return d.Retry(t.Context(), provider.Again{Why: provider.FailedAgain, After: time.Millisecond})
						}
					case strings.HasSuffix(d.Job().ID, "4"):
						settle = func() error { return d.DeadLetter(t.Context(), failure("permanent", "no")) }
						left--
					default:
						left--
					}
					wg.Go(func() {
						if err := settle(); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
			}
			if err := sub.Close(t.Context()); err != nil {
				t.Error(err)
			}
			letters, _, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{Limit: 500}, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range letters {
				if r, err := s.provider.Dead.Discard(t.Context(), l.Address); err != nil || r[0].Outcome != provider.OutcomeStored {
					t.Fatal(r, err)
				}
			}
		}
	}
	keys := func() string {
		var list []string
		until(t, "claims for a time have run out", func() bool {
			list = operator.Keys(t.Context(), "*").Val() // without what has run out
			return len(list) > 0 && !slices.ContainsFunc(list, func(key string) bool { return strings.Contains(key, ":claim:") })
		})
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	round(1000)
	before, memory := keys(), usedMemory(t, operator)
	round(10_000)
	if after := keys(); after != before {
		t.Errorf("keys after the work: %s; before: %s", after, before)
	}
	if after := usedMemory(t, operator); after > memory+memory/20+5<<20 {
		t.Errorf("redis uses %d bytes after the work, %d before", after, memory)
	}
	if n := len(operator.XInfoConsumers(t.Context(), s.keys.queue(scope{}, "q").stream, group).Val()); n != 0 {
		t.Errorf("%d consumers are left after all workers have said goodbye", n)
	}
}

// TestLargeJobs share steps that stay small.
func TestLargeJobs(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	large := job("large", func(j *provider.Job) { j.Payload = bytes.Repeat([]byte("x"), 4<<20) })
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			j := large
			j.ID = fmt.Sprint(i)
			if r := s.Publish(t.Context(), []provider.Job{j}, provider.PublishOptions{})[0]; r.Outcome != provider.OutcomeStored {
				t.Errorf("publish of 4 MiB: %s, %v", r.Outcome, r.Err)
			}
		})
	}
	wg.Wait()
	sub := s.worker(t, time.Minute, "q")
	for _, d := range sub.takes(t, 8) {
		if len(d.Job().Payload) != 4<<20 {
			t.Errorf("%d bytes came", len(d.Job().Payload))
		}
		if err := d.DeadLetter(t.Context(), failure("permanent", "no")); err != nil && !errors.Is(err, provider.ErrSettled) {
			t.Error(err)
		}
	}
}
