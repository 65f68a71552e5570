package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/internal/brokers"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// mainPath enqueues, runs, retries, delays and dead-letters.
func mainPath(t *testing.T, s *store) {
	t.Helper()
	th := stage(t, s)
	th.work = func(_ context.Context, id string) error {
		if th.ran(id) == 1 && id[0] < 'H' {
			return context.DeadlineExceeded // once
		}
		return nil
	}
	th.starts(backstage.WorkerConfig{Concurrency: 10, Lease: 30 * time.Second})
	ids := th.enqueue(100)
	until(t, "all jobs are done", func() bool { return th.done(ids) })
	s.stores(t, job("dead", onQueue("letters")))
	if err := s.worker(t, time.Minute, "letters").takes(t, 1)[0].DeadLetter(t.Context(), failure("permanent", "no")); err != nil {
		t.Error(err)
	}
	letters, _, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{}, "")
	if err != nil || len(letters) != 1 {
		t.Errorf("%d dead letters, %v; want 1", len(letters), err)
	}
	th.nothingTwice()
	th.spotless()
}

// TestOverTLS goes the main path over encrypted connections, by a client and by a URL.
func TestOverTLS(t *testing.T) {
	t.Parallel()
	server := brokers.RequireRedis(t, brokers.RedisOptions{TLS: true})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), TLSConfig: server.TLS()})
	defer client.Close()
	mainPath(t, openStore(t, Config{Client: client}))
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the user's client after the provider's close: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := Open(ctx, Config{URL: "rediss://" + server.Addr()}); err == nil {
		t.Errorf("a certificate that nobody vouches for is accepted")
	}
}

// TestSentinelFailsOver kills the master in the middle of work. What the replica had
// goes on there. (Without WaitReplicas, jobs that only the old master had confirmed may
// be gone with it, and those whose end it alone knew come again: that is asynchronous
// replication.)
func TestSentinelFailsOver(t *testing.T) {
	t.Parallel()
	servers := brokers.RequireRedisSentinel(t)
	url := "redis://" + servers.Addr() + "?master_name=" + servers.Name()
	s := openStore(t, Config{URL: url, Timeout: time.Second})
	th := stage(t, s)
	th.work = func(context.Context, string) error {
		sleep(t.Context(), time.Duration(rand.IntN(10))*time.Millisecond)
		return nil
	}
	th.starts(backstage.WorkerConfig{Concurrency: 10, Lease: 5 * time.Second})
	careful := openStore(t, Config{URL: url, Namespace: s.cfg.Namespace, WaitReplicas: 1, WaitTimeout: 10 * time.Second})
	client, err := backstage.NewClient(careful.provider, backstage.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	th.client = client
	ids := th.enqueue(100)
	master, err := servers.Master(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := master.Kill(); err != nil {
		t.Fatal(err)
	}
	th.sick("the master is gone")
	if _, err := servers.Promoted(t.Context(), master); err != nil {
		t.Fatal(err)
	}
	if th.client, err = backstage.NewClient(s.provider, backstage.ClientConfig{}); err != nil {
		t.Fatal(err)
	}
	th.resumes()
	until(t, "all jobs are done", func() bool { return th.done(ids) })
}

// TestReplicasThatAreWaitedFor holds the provider to WaitReplicas: with too few, what
// the master alone has is not known to be stored.
func TestReplicasThatAreWaitedFor(t *testing.T) {
	t.Parallel()
	servers := brokers.RequireRedisSentinel(t)
	master, err := servers.Master(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t, Config{URL: "redis://" + master.Addr(), WaitReplicas: 1, WaitTimeout: 10 * time.Second})
	s.stores(t, jobs(3, "")...)
	sub := s.worker(t, time.Minute, "q")
	runs := sub.takes(t, 3)
	ack(t, runs[0])

	more := openStore(t, Config{URL: "redis://" + master.Addr(), Namespace: s.cfg.Namespace, WaitReplicas: 2, WaitTimeout: 50 * time.Millisecond})
	if r := more.Publish(t.Context(), []provider.Job{job("a")}, provider.PublishOptions{})[0]; r.Outcome != provider.OutcomeUnknown || r.Err == nil {
		t.Errorf("publish with one replica of two: %s, %v; want it unknown", r.Outcome, r.Err)
	}
	d := more.worker(t, time.Minute, "q").takes(t, 1)[0]
	var few *tooFewError
	for range 2 {
		if err := d.Ack(t.Context(), nil); !errors.As(err, &few) {
			t.Errorf("an ack with one replica of two: %v; want that it is not known", err)
		}
	}
	more.replicas.least = 1
	if err := d.Ack(t.Context(), nil); err != nil {
		t.Errorf("the same ack with one replica of one: %v; want nil, for the master did it before", err)
	}
}

// TestTheSlotMoves gives the namespace's slot to another node of the cluster under a
// running worker, key by key, as an operator does who rebalances.
func TestTheSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := brokers.RequireRedisCluster(t)
	s := openStore(t, Config{URL: clusterURL(cluster)})
	th := stage(t, s)
	th.work = func(context.Context, string) error {
		sleep(t.Context(), time.Duration(rand.IntN(10))*time.Millisecond)
		return nil
	}
	th.starts(backstage.WorkerConfig{Concurrency: 10, Lease: time.Minute})
	ids := th.enqueue(100)
	key := s.keys.queue(scope{}, "q").stream
	slot, err := admin(t, cluster.Addrs()[0]).ClusterKeySlot(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	owner, err := s.link.server(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	moving := make(chan error, 1)
	go func() { moving <- moveSlot(t, cluster.Addrs(), slot, owner.Options().Addr) }()
	ids = append(ids, th.enqueue(300)...)
	if err := <-moving; err != nil {
		t.Fatal(err)
	}
	th.resume()
	until(t, "all jobs are done", func() bool { return th.done(ids) })
	th.once(ids)
	th.spotless()
	if now, err := s.link.server(t.Context(), key); err != nil || now.Options().Addr == owner.Options().Addr {
		t.Errorf("the slot is still where it was: %v", err)
	}
}

// moveSlot moves a slot from the node at an address to another one.
func moveSlot(t *testing.T, addrs []string, slot int64, from string) error {
	ctx := t.Context()
	var src, dst *redis.Client
	var all []*redis.Client
	for _, addr := range addrs {
		c := admin(t, addr)
		all = append(all, c)
		if addr == from {
			src = c
		} else if dst == nil {
			dst = c
		}
	}
	id := func(c *redis.Client) string { return c.Do(ctx, "CLUSTER", "MYID").Val().(string) }
	srcID, dstID := id(src), id(dst)
	if err := dst.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", srcID).Err(); err != nil {
		return err
	}
	if err := src.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", dstID).Err(); err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(dst.Options().Addr)
	for {
		keys, err := src.ClusterGetKeysInSlot(ctx, int(slot), 1).Result()
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			break
		}
		if err := src.Do(ctx, "MIGRATE", host, port, keys[0], 0, 5000).Err(); err != nil {
			return err
		}
		sleep(ctx, 50*time.Millisecond) // while some keys are here and some are there
	}
	for _, c := range append([]*redis.Client{dst, src}, all...) {
		if err := c.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", dstID).Err(); err != nil {
			return err
		}
	}
	return nil
}

// TestABlockedReadHoldsNobodyUp: workers that wait have connections of their own,
// however small the user's pool is.
func TestABlockedReadHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: brokers.SharedRedis(t), PoolSize: 1})
	defer client.Close()
	s := openStore(t, Config{Client: client})
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 5 {
		sub := s.worker(t, time.Minute, "empty", "empty too")
		waiting.Go(func() { _, _ = sub.Receive(ctx, []string{"empty", "empty too"}, 2) })
	}
	began := time.Now()
	for i := range 50 {
		s.stores(t, job(fmt.Sprint(i)))
	}
	took := time.Since(began)
	cancel()
	waiting.Wait()
	if took > 10*time.Second { // each would have waited for a read's end
		t.Errorf("50 jobs were stored in %v beside five workers that wait", took)
	}
}

// TestADeadWorkersJobsOutliveARestart: who had what, and since when, is on record.
func TestADeadWorkersJobsOutliveARestart(t *testing.T) {
	t.Parallel()
	server := brokers.RequireRedis(t, durable())
	s := openStore(t, Config{URL: "redis://" + server.Addr(), Timeout: time.Second})
	s.stores(t, jobs(20, "")...)
	s.worker(t, time.Second, "q").takes(t, 20)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := s.worker(t, time.Minute, "q").takes(t, 20)
	for _, d := range got {
		if n := d.Job().Counters.Crashes; n != 1 {
			t.Errorf("%s counts %d crashes; want 1", d.Job().ID, n)
		}
	}
	ack(t, got...)
}

// TestAUserWithFewRights needs those that the documentation names, and no others.
func TestAUserWithFewRights(t *testing.T) {
	t.Parallel()
	server := brokers.RequireRedis(t, brokers.RedisOptions{})
	rights := []any{"ACL", "SETUSER", "shop", "on", ">secret", "~{few*", "+@read", "+@write", "+@scripting", "+@connection", "+@blocking", "+info", "+time"}
	if err := admin(t, server.Addr()).Do(t.Context(), rights...).Err(); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"few", "few.rights"} {
		s := openStore(t, Config{URL: "redis://shop:secret@" + server.Addr(), Namespace: namespace})
		seen := s.observe(t)
		mainPath(t, s)
		s.stores(t, job("held", in(time.Hour)))
		if cancelled, err := s.provider.Delays.Cancel(t.Context(), "held"); err != nil || len(cancelled) != 1 {
			t.Errorf("cancel: %v, %v", cancelled, err)
		}
		if seen.count(provider.Degraded) > 0 {
			t.Errorf("events: %v", seen.events)
		}
	}
	other := openStore(t, Config{URL: "redis://shop:secret@" + server.Addr(), Namespace: "few"})
	other.keys = newKeyring("elsewhere", TagNamespace)
	r := other.Publish(t.Context(), []provider.Job{job("a")}, provider.PublishOptions{})[0]
	if why, known := refusalOf(r.Err); r.Outcome != provider.OutcomeRefused || !known || why.word != "NOPERM" {
		t.Errorf("publish in a namespace that is not allowed: %s, %v; want it refused for its rights", r.Outcome, r.Err)
	}
}
