package brokers

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRedisComesBackWithItsData(t *testing.T) {
	t.Parallel()
	checkCrash(t)
}

func TestPausedRedisAnswersLater(t *testing.T) {
	t.Parallel()
	checkPause(t)
}

func TestRedisAnswersOverTLSAlone(t *testing.T) {
	t.Parallel()
	checkTLS(t)
}

func TestRedisClusterServesEverySlot(t *testing.T) {
	t.Parallel()
	checkCluster(t)
}

func TestSentinelPromotesTheReplica(t *testing.T) {
	t.Parallel()
	checkSentinel(t)
}

// checkCrash looks for what was synced before a crash. It crashes and stops more than
// once, because tests do.
func checkCrash(t *testing.T) {
	r := RequireRedis(t, RedisOptions{Args: []string{"--appendfsync", "always"}})
	address := r.Addr()
	if _, err := r.do(t.Context(), "SET", "key", "kept"); err != nil {
		t.Fatal(err)
	}
	for _, end := range []func() error{r.Kill, r.Kill, func() error { return r.Stop(t.Context()) }} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.do(t.Context(), "PING"); err == nil {
			t.Fatal("a server that has ended answers")
		}
	}
	for range 2 { // the second time it is running
		if err := r.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := r.do(t.Context(), "GET", "key"); err != nil || got != "kept" || r.Addr() != address {
			t.Errorf("after a restart the key is %q on %s, %v; want kept on %s", got, r.Addr(), err, address)
		}
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

func checkPause(t *testing.T) {
	r := RequireRedis(t, RedisOptions{})
	if err := r.Pause(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := r.do(context.Background(), "PING")
		answered <- err
	}()
	// That nothing ever comes cannot be seen: this is a short look.
	select {
	case err := <-answered:
		t.Fatalf("a paused server answers: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := r.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Errorf("after it went on, the server answers %v", err)
	}
	for _, end := range []func() error{func() error { return r.Stop(t.Context()) }, r.Kill} {
		if err := r.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Pause(); err != nil {
			t.Fatal(err)
		}
		if err := end(); err != nil {
			t.Errorf("a paused server does not end: %v", err)
		}
	}
}

func checkTLS(t *testing.T) {
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

func checkCluster(t *testing.T) {
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
	// Whom a client is sent to is reachable for it.
	moved := 0
	for _, n := range c.Nodes() {
		_, err := n.do(t.Context(), "GET", "key")
		var to replyError
		if errors.As(err, &to) && strings.HasPrefix(string(to), "MOVED ") {
			moved++
			if address := strings.Fields(string(to))[2]; !slices.Contains(c.Addrs(), address) {
				t.Errorf("%s sends clients to %s, which is none of %q", n.Addr(), address, c.Addrs())
			}
		}
	}
	if moved != clusterNodes-1 {
		t.Errorf("%d nodes send a client elsewhere, want %d", moved, clusterNodes-1)
	}
}

func checkSentinel(t *testing.T) {
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

func TestServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	p := requireProgram(t, redisRecipe())
	_, err := startRedis(t.Context(), p, RedisOptions{Args: []string{"--no-such-option", "yes"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("a server with a wrong option: %v; want its own words", err)
	}
}

func TestSitesDoNotShareAPort(t *testing.T) {
	t.Parallel()
	taken := make(map[int]bool)
	for range 20 {
		s, err := claim(2)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.remove(); err != nil {
				t.Errorf("remove: %v", err)
			}
			if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a site that was removed is still there: %v", err)
			}
		})
		for i := range 2 {
			if taken[s.port(i)] {
				t.Fatalf("port %d is in two sites", s.port(i))
			}
			taken[s.port(i)] = true
		}
	}
}

func TestVersionsAreComparedByNumber(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version string
		want    bool
	}{{"7.0.15", true}, {"7.0", true}, {"10.1", true}, {"6.2.14", false}, {"6", false}, {"", false}, {"7", false}} {
		if got := reaches(c.version, "7.0"); got != c.want {
			t.Errorf("version %q reaches 7.0: %v, want %v", c.version, got, c.want)
		}
	}
}
