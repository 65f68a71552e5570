package redisstreams

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// TestWhatCannotWork is refused with a sentence and a remedy, before anything is
// connected.
func TestWhatCannotWork(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{})
	ring := redis.NewRing(&redis.RingOptions{})
	defer client.Close()
	defer ring.Close()
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"a client and a URL":     {Config{Client: client, URL: "redis://h"}, "ways to say the same"},
		"options and a URL":      {Config{Options: &redis.UniversalOptions{}, URL: "redis://h"}, "ways to say the same"},
		"a ring":                 {Config{Client: ring}, "*redis.Ring"},
		"a brace":                {Config{Namespace: "a{b}"}, "braces"},
		"a slash":                {Config{Namespace: "a/b"}, "slashes"},
		"tags":                   {Config{Tags: 7}, "tags 7"},
		"replicas":               {Config{WaitReplicas: -1}, "WaitReplicas is -1"},
		"letters":                {Config{MaxDead: -1}, "MaxDead is -1"},
		"a bound":                {Config{Bounds: map[string]int{"q": -1}}, "Bounds has -1"},
		"a bound of no queue":    {Config{Bounds: map[string]int{"": 1}}, `queue ""`},
		"a negative time":        {Config{Timeout: -time.Second}, "Timeout is -1s"},
		"a lease of a promotion": {Config{PromotionLease: time.Microsecond}, "PromotionLease is 1µs"},
		"a wait":                 {Config{WaitTimeout: -1}, "WaitTimeout is -1ns"},
		"no URL":                 {Config{URL: "http://h"}, "invalid URL scheme"},
		"a setting":              {Config{URL: "redis://h?what=1"}, "unexpected option"},
		"a cluster's setting":    {Config{URL: "redis://h?addr=h2:1&what=1"}, "unexpected option"},
		"a sentinel's setting":   {Config{URL: "redis://h?master_name=m&what=1"}, "unexpected option"},
	} {
		_, err := Open(t.Context(), c.cfg)
		var setup *provider.SetupError
		if !errors.As(err, &setup) || !strings.Contains(err.Error(), c.want) || setup.Remedy == "" {
			t.Errorf("%s: %v; want a SetupError that says %q, and what to do", name, err, c.want)
		}
	}
}

// TestURLs are understood as go-redis' users write them.
func TestURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis://h:1":                            "h:1 db 0",
		"redis://user:pw@h:1/3?client_name=x":    "h:1 db 3 user x",
		"unix:///tmp/redis.sock?db=2":            "/tmp/redis.sock db 2",
		"redis://h:1?addr=h2:2&addr=h3:3":        "cluster [h:1 h2:2 h3:3]",
		"redis://h:1?cluster=true&max_retries=7": "cluster [h:1]",
		"redis://h:1?master_name=main&db=2":      "FailoverClient db 2",
	} {
		client, err := fromURL(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		s := &source{root: client, timeout: time.Second}
		made := s.client()
		got := ""
		switch made := made.(type) {
		case *redis.Client:
			o := made.Options()
			got = strings.TrimSpace(fmt.Sprintf("%s db %d %s %s", o.Addr, o.DB, o.Username, o.ClientName))
			if o.MaxRetries != 0 || o.Protocol != 2 || o.ReadTimeout != time.Second {
				t.Errorf("%s: retries %d, protocol %d, read timeout %v; want 0, 2 and 1s", url, o.MaxRetries, o.Protocol, o.ReadTimeout)
			}
		case *redis.ClusterClient:
			o := made.Options()
			got = fmt.Sprintf("cluster %v", o.Addrs)
			if o.Protocol != 2 || o.ReadTimeout != time.Second {
				t.Errorf("%s: protocol %d, read timeout %v; want 2 and 1s", url, o.Protocol, o.ReadTimeout)
			}
		}
		if got != want {
			t.Errorf("%s: %q; want %q", url, got, want)
		}
		_ = made.Close()
		_ = client.Close()
	}
}

// oldServer answers as a Redis of a version does, as far as Open asks.
func oldServer(t *testing.T, version string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answerAs(conn, version)
		}
	}()
	return listener.Addr().String()
}

func answerAs(conn net.Conn, version string) {
	defer conn.Close()
	for r := bufio.NewReader(conn); ; {
		words, err := readCommand(r)
		if err != nil {
			return
		}
		switch strings.ToLower(words[0]) {
		case "info":
			text := "# Server\r\nredis_version:" + version + "\r\n"
			fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(text), text)
		case "hello", "client":
			fmt.Fprint(conn, "-ERR unknown command\r\n")
		default:
			fmt.Fprint(conn, "+OK\r\n")
		}
	}
}

func readCommand(r *bufio.Reader) ([]string, error) {
	var n int
	if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		var size int
		if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		for read := 0; read < len(b); {
			m, err := r.Read(b[read:])
			if err != nil {
				return nil, err
			}
			read += m
		}
		words[i] = string(b[:size])
	}
	return words, nil
}

// TestOldServersAreRefused by their version, which is named.
func TestOldServersAreRefused(t *testing.T) {
	t.Parallel()
	for version, fine := range map[string]bool{
		"5.0.14": false, "6.2.14": false, "6.9.240": false, "7.0.0": true, "7.2.4": true, "8.10.0": true, "255.255.255": true, "unknown": true,
	} {
		if err := checkVersion(version); (err == nil) != fine {
			t.Errorf("Redis %s: %v; want it to be fine: %v", version, err, fine)
		}
	}
	_, err := Open(t.Context(), Config{URL: "redis://" + oldServer(t, "6.2.14")})
	var setup *provider.SetupError
	if !errors.As(err, &setup) || !strings.Contains(setup.Problem, "6.2.14") || !strings.Contains(setup.Remedy, "7.0") {
		t.Errorf("Open of Redis 6.2.14: %v; want a SetupError that names both versions", err)
	}
}

// TestWeakSettingsAreReported to the first who observes.
func TestWeakSettingsAreReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"fine":      {nil, nil},
		"no file":   {[]string{"--appendonly", "no"}, []string{"append-only file is off"}},
		"evicting":  {[]string{"--maxmemory-policy", "allkeys-lru"}, []string{"jobs with them"}},
		"claims":    {[]string{"--maxmemory-policy", "volatile-ttl"}, []string{"claims are evicted"}},
		"both":      {[]string{"--appendonly", "no", "--maxmemory-policy", "allkeys-random"}, []string{"append-only file is off", "jobs with them"}},
		"forbidden": {[]string{"--rename-command", "INFO", ""}, []string{"cannot be seen"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := brokers.RequireRedis(t, brokers.RedisOptions{Args: c.args})
			s := openStore(t, Config{URL: "redis://" + server.Addr()})
			seen := s.observe(t)
			if n := seen.count(provider.Degraded); n != int64(len(c.want)) {
				t.Errorf("%d events; want %d: %v", n, len(c.want), seen.events)
				return
			}
			for i, want := range c.want {
				if !strings.Contains(seen.events[i].Message, want) {
					t.Errorf("event %q; want %q in it", seen.events[i].Message, want)
				}
			}
			s.stores(t, job("a"))
			ack(t, s.worker(t, time.Minute, "q").takes(t, 1)...)
		})
	}
}

// TestOpenOfNothing ends with its context, and says what is wrong.
func TestOpenOfNothing(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := listener.Addr().String() // nobody accepts
	defer listener.Close()
	for _, addr := range []string{"127.0.0.1:1", silent} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := Open(ctx, Config{URL: "redis://" + addr})
		cancel()
		var known *Error
		if !errors.As(err, &known) || known.Remedy == "" {
			t.Errorf("Open of %s: %v; want an Error with a remedy", addr, err)
		}
	}
}

// TestAWrongPassword is an error, not a server that tells little.
func TestAWrongPassword(t *testing.T) {
	t.Parallel()
	server := brokers.RequireRedis(t, brokers.RedisOptions{Args: []string{"--requirepass", "secret"}})
	for _, login := range []string{"", ":wrong@", "nobody:secret@"} {
		_, err := Open(t.Context(), Config{URL: "redis://" + login + server.Addr()})
		var known *Error
		if !errors.As(err, &known) || !strings.Contains(known.Problem, "password") {
			t.Errorf("Open as %q: %v; want an Error about the password", login, err)
		}
	}
	openStore(t, Config{URL: "redis://:secret@" + server.Addr()}).stores(t, job("a"))
}

// TestTheUsersClient stays as it was: it is not closed, and its settings are not changed.
func TestTheUsersClient(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: brokers.SharedRedis(t), MaxRetries: 5, ClientName: "shop"})
	defer client.Close()
	before := *client.Options()
	s := openStore(t, Config{Client: client})
	s.stores(t, job("a"))
	ack(t, s.worker(t, time.Minute, "q").takes(t, 1)...)
	if err := s.close(t.Context()); err != nil {
		t.Error(err)
	}
	after := *client.Options()
	if before.MaxRetries != after.MaxRetries || before.Protocol != after.Protocol || before.ReadTimeout != after.ReadTimeout || before.PoolSize != after.PoolSize {
		t.Errorf("the client's options were %+v and are %+v", before, after)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the client after the provider's close: %v", err)
	}
}

// TestAStampHasAllCounters that tell two states of a job apart.
func TestAStampHasAllCounters(t *testing.T) {
	t.Parallel()
	all := provider.Counters{Failures: 1, Crashes: 2, Snoozes: 3, Parks: 4, Starts: 5, StartCrashes: 6, Replays: 7}
	got, other := stampOf(&provider.Job{Task: "a", Counters: all}), stampOf(&provider.Job{Task: "b", Counters: all})
	if !strings.HasPrefix(got, "1.3.4.5.7.") || got == other {
		t.Errorf("the stamps of two tasks are %q and %q", got, other)
	}
	if all.Stamp() != (provider.Counters{Failures: 1, Snoozes: 3, Parks: 4, Starts: 5, Replays: 7}) {
		t.Errorf("Counters.Stamp has something that the stamp here has not: %+v", all.Stamp())
	}
}

// TestTimesAreNeverEarly: what is rounded is rounded up.
func TestTimesAreNeverEarly(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration][2]string{
		0:                        {"0", "1"},
		1:                        {"1", "1"},
		time.Microsecond:         {"1", "1"},
		time.Millisecond:         {"1000", "1"},
		time.Millisecond + 1:     {"1001", "2"},
		time.Hour:                {"3600000000", "3600000"},
		time.Duration(1<<63 - 1): {"9223372036854776", "9223372036855"},
	} {
		if got := [2]string{microseconds(d), milliseconds(d)}; got != want {
			t.Errorf("%v: %v; want %v", d, got, want)
		}
	}
}

// TestIDsInOrder compares ids of entries as Redis does.
func TestIDsInOrder(t *testing.T) {
	t.Parallel()
	ids := []string{"0-0", "0-1", "0-10", "1-0", "9-99", "10-0", "1700000000000-0", "1700000000000-2", "1700000000000-10", "1700000000001-0"}
	for i := range ids {
		for j := range ids {
			if got := before(ids[i], ids[j]); got != (i < j) {
				t.Errorf("%s before %s: %v", ids[i], ids[j], got)
			}
		}
	}
}
