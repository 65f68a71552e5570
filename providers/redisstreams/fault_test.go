package redisstreams

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// theatreOn opens a rig on a server of the test's own. What Redis does not answer soon
// is given up soon.
func theatreOn(t *testing.T, addr string) *theatre {
	t.Helper()
	return stage(t, openStore(t, Config{URL: "redis://" + addr, Timeout: time.Second}))
}

// TestConnectionsThatAreKilled kills every connection again and again while jobs come
// and go. None is lost, none that is finished runs again, and though answers are lost
// with their connections, no job counts a crash: what was handed out in them is found.
func TestConnectionsThatAreKilled(t *testing.T) {
	t.Parallel()
	server := brokers.RequireRedis(t, brokers.RedisOptions{})
	th := theatreOn(t, server.Addr())
	th.work = func(context.Context, string) error {
		sleep(t.Context(), time.Duration(rand.IntN(5))*time.Millisecond)
		return nil
	}
	th.starts(backstage.WorkerConfig{Concurrency: 10, Lease: time.Minute})
	operator := admin(t, server.Addr())
	var stop atomic.Bool
	kills := make(chan int)
	// For much less than the lease, in which a busy machine would settle nothing.
	end := time.Now().Add(15 * time.Second)
	go func() {
		n := 0
		for ; !stop.Load() && time.Now().Before(end); n++ {
			_ = operator.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err()
			sleep(t.Context(), time.Duration(10+rand.IntN(50))*time.Millisecond)
		}
		kills <- n
	}()
	var ids []string
	for range 20 {
		ids = append(ids, th.enqueue(25)...)
	}
	stop.Store(true)
	t.Logf("connections were killed %d times", <-kills)
	until(t, "all jobs are done", func() bool { return th.done(ids) })
	th.resume()
	th.once(ids)
	th.spotless()
}

// TestPauseDuringSettlement lets Redis answer nobody while jobs are being settled, for
// longer than a settlement waits.
func TestPauseDuringSettlement(t *testing.T) {
	t.Parallel()
	server := brokers.RequireRedis(t, brokers.RedisOptions{})
	th := theatreOn(t, server.Addr())
	goOn := make(chan struct{})
	th.work = func(context.Context, string) error { <-goOn; return nil }
	th.starts(backstage.WorkerConfig{Concurrency: 20, Lease: 30 * time.Second})
	ids := th.enqueue(20)
	until(t, "all jobs run", func() bool {
		for _, id := range ids {
			if th.ran(id) == 0 {
				return false
			}
		}
		return true
	})
	if err := admin(t, server.Addr()).ClientPause(t.Context(), 4*time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	th.sick("redis is paused")
	until(t, "all jobs are done", func() bool { return th.done(ids) })
	th.resume()
	th.once(ids)
	th.spotless()
}

// TestRestart kills Redis in the middle of work, and starts it again with what its
// append-only file has: everything that was confirmed.
func TestRestart(t *testing.T) {
	t.Parallel()
	server := brokers.RequireRedis(t, durable())
	th := theatreOn(t, server.Addr())
	th.work = func(context.Context, string) error {
		sleep(t.Context(), time.Duration(rand.IntN(20))*time.Millisecond)
		return nil
	}
	th.starts(backstage.WorkerConfig{Concurrency: 10, Lease: time.Minute})
	ids := th.enqueue(300)
	for range 2 {
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		th.sick("redis is gone")
		until(t, "it is reported", func() bool { return th.seen.has(provider.Disconnected) })
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		th.resume()
	}
	until(t, "all jobs are done", func() bool { return th.done(ids) })
	until(t, "its end is reported", func() bool { return th.seen.has(provider.Reconnected) })
	th.once(ids)
	th.spotless()
}

// TestRoleChange makes the server a replica under a running worker, and a master again.
func TestRoleChange(t *testing.T) {
	t.Parallel()
	server := brokers.RequireRedis(t, brokers.RedisOptions{})
	th := theatreOn(t, server.Addr())
	th.work = func(context.Context, string) error {
		sleep(t.Context(), time.Duration(rand.IntN(20))*time.Millisecond)
		return nil
	}
	th.starts(backstage.WorkerConfig{Concurrency: 10, Lease: time.Minute})
	ids := th.enqueue(200)
	operator := admin(t, server.Addr())
	if err := operator.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	th.sick("it is a replica")
	var refused provider.Stored
	until(t, "a replica answers", func() bool { // on a busy machine not within a second
		refused = th.store.Publish(t.Context(), []provider.Job{job("refused")}, provider.PublishOptions{})[0]
		return refused.Outcome != provider.OutcomeUnknown
	})
	if r, known := refusalOf(refused.Err); refused.Outcome != provider.OutcomeRefused || !known || r.word != "READONLY" {
		t.Errorf("publish to a replica: %s, %v; want it refused with READONLY", refused.Outcome, refused.Err)
	}
	until(t, "it is reported", func() bool { return th.seen.has(provider.Blocked) })
	if err := operator.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	th.resume()
	until(t, "all jobs are done", func() bool { return th.done(ids) })
	until(t, "its end is reported", func() bool { return th.seen.has(provider.Unblocked) })
	th.once(ids)
	th.spotless()
}

// TestBlackhole lets a network between worker and server go silent, without an end of
// any connection: for both directions, and for answers alone, so that the server goes
// on handing out jobs into the void.
func TestBlackhole(t *testing.T) {
	for name, silence := range map[string]func(*brokers.Proxy){
		"both ways": (*brokers.Proxy).Blackhole,
		"answers":   (*brokers.Proxy).BlackholeReplies,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := brokers.RequireRedis(t, brokers.RedisOptions{})
			proxy := brokers.StartProxy(t, server.Addr())
			th := theatreOn(t, proxy.Addr())
			th.work = func(context.Context, string) error {
				sleep(t.Context(), time.Duration(rand.IntN(20))*time.Millisecond)
				return nil
			}
			th.starts(backstage.WorkerConfig{Concurrency: 10, Lease: time.Minute})
			ids := th.enqueue(200)
			silence(proxy)
			// Others go on, and what they publish is handed out to nobody.
			beside := openStore(t, Config{URL: "redis://" + server.Addr(), Namespace: th.store.cfg.Namespace})
			beside.stores(t, jobs(5, "beside")...)
			th.sick("redis is silent")
			until(t, "it is reported", func() bool { return th.seen.has(provider.Disconnected) })
			proxy.Resume()
			th.resume()
			until(t, "all jobs are done", func() bool { return th.done(ids) })
			until(t, "nothing is left", func() bool {
				stats, err := beside.provider.Stats.Queue(t.Context(), "q")
				depth, _ := stats.Depth.Get()
				running, _ := stats.InFlight.Get()
				return err == nil && depth == 0 && running == 0
			})
			th.once(ids)
			th.spotless()
		})
	}
}

// TestCallsInABlackholeEnd bounds every call by the provider's own time, whatever the
// caller's context allows.
func TestCallsInABlackholeEnd(t *testing.T) {
	t.Parallel()
	server := brokers.RequireRedis(t, brokers.RedisOptions{})
	proxy := brokers.StartProxy(t, server.Addr())
	s := openStore(t, Config{URL: "redis://" + proxy.Addr(), Timeout: 500 * time.Millisecond})
	s.stores(t, job("one"))
	sub := s.worker(t, time.Minute, "q")
	d := sub.takes(t, 1)[0]
	proxy.Blackhole()
	defer proxy.Resume()
	if r := s.Publish(t.Context(), []provider.Job{job("a")}, provider.PublishOptions{})[0]; r.Outcome != provider.OutcomeUnknown || r.Err == nil {
		t.Errorf("publish: %s, %v; want it unknown, and why", r.Outcome, r.Err)
	}
	if err := d.Ack(t.Context(), nil); err == nil {
		t.Errorf("ack is on record")
	}
	if err := sub.Extend(t.Context(), []provider.Delivery{d})[0]; err == nil {
		t.Errorf("a heartbeat is on record")
	}
	if _, err := s.provider.Stats.Queues(t.Context()); err == nil {
		t.Errorf("the list of queues is there")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if ds, err := sub.Receive(ctx, []string{"q"}, 1); len(ds) > 0 || err == nil {
		t.Errorf("receive: %d deliveries, %v", len(ds), err)
	}
	took := time.Since(began)
	t.Logf("receive returned after %v, with a context of 200ms", took)
	if took > 10*time.Second {
		t.Errorf("receive returned %v after its start, with a context of 200ms", took)
	}
}

// TestEvenACommandThatComesLate is done by a server that a client has given up long
// ago: what it handed out then is found, and not started twice.
func TestEvenACommandThatComesLate(t *testing.T) {
	t.Parallel()
	server := brokers.RequireRedis(t, brokers.RedisOptions{})
	proxy := brokers.StartProxy(t, server.Addr())
	s := openStore(t, Config{URL: "redis://" + proxy.Addr(), Timeout: time.Second})
	sub := s.worker(t, time.Minute, "q")
	if got := sub.gets(t, 100*time.Millisecond, 1); len(got) > 0 {
		t.Fatal("a job that nobody published")
	}
	proxy.Blackhole()
	sub.gets(t, 6*time.Second, 1) // several reads are on their way, and given up
	beside := openStore(t, Config{URL: "redis://" + server.Addr(), Namespace: s.cfg.Namespace})
	beside.stores(t, jobs(10, "")...)
	proxy.Resume() // and arrive now
	got := sub.takes(t, 10)
	for _, d := range got {
		if n := d.Job().Counters.Crashes; n > 0 {
			t.Errorf("%s counts %d crashes and was never started", d.Job().ID, n)
		}
	}
	ack(t, got...)
	if more := sub.gets(t, time.Second, 1); len(more) > 0 {
		t.Errorf("%s came twice", more[0].Job().ID)
	}
}
