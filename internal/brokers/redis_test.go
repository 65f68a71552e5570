package brokers

import (
	"crypto/tls"
	"testing"
)

func TestRedisComesBackWithItsData(t *testing.T) {
	t.Parallel()
	r := RequireRedis(t, RedisOptions{Args: []string{"--appendfsync", "always"}})
	if _, err := r.do(t.Context(), "SET", "key", "kept"); err != nil {
		t.Fatal(err)
	}
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.do(t.Context(), "PING"); err == nil {
		t.Error("a killed server answers")
	}
	if err := r.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := r.do(t.Context(), "GET", "key"); err != nil || got != "kept" {
		t.Errorf("after the restart the key is %q, %v; want kept", got, err)
	}
}

func TestRedisClusterServesEverySlot(t *testing.T) {
	t.Parallel()
	c := RequireRedisCluster(t)
	if got := len(c.Addrs()); got != clusterNodes {
		t.Fatalf("%d nodes, want %d", got, clusterNodes)
	}
	victim := c.Nodes()[1]
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := victim.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Settled(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSentinelPromotesTheReplica(t *testing.T) {
	t.Parallel()
	s := RequireRedisSentinel(t)
	before, err := s.Master(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if before != s.Servers()[0] {
		t.Errorf("the sentinel names %s, want the server that was started as the master", before.Addr())
	}
	if _, err := before.do(t.Context(), "SET", "key", "copied"); err != nil {
		t.Fatal(err)
	}
	if _, err := before.ask(t.Context(), "WAIT", "1", "0"); err != nil {
		t.Fatal(err)
	}
	if err := before.Kill(); err != nil {
		t.Fatal(err)
	}
	after, err := s.Promoted(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := after.do(t.Context(), "GET", "key"); err != nil || got != "copied" {
		t.Errorf("the new master's key is %q, %v; want copied", got, err)
	}
}

func TestRedisAnswersOverTLSAlone(t *testing.T) {
	t.Parallel()
	r := RequireRedis(t, RedisOptions{TLS: true})
	if got, err := r.do(t.Context(), "PING"); err != nil || got != "PONG" {
		t.Errorf("PING over TLS answers %q, %v", got, err)
	}
	if got, err := ask(t.Context(), r.Addr(), nil, "PING"); err == nil {
		t.Errorf("PING in the clear answers %q", got)
	}
	if got, err := ask(t.Context(), r.Addr(), &tls.Config{ServerName: "127.0.0.1"}, "PING"); err == nil {
		t.Errorf("whoever does not trust the certificate gets %q", got)
	}
}
