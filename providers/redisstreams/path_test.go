package redisstreams

import (
	"context"
	"errors"
	"math/rand/v2"
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
