package brokers

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// required skips a test that runs without brokers.
func required(t testing.TB, r recipe) {
	t.Helper()
	named := os.Getenv(Required)
	all := strings.Split(strings.ToLower(named), ",")
	if named == "" || named != "1" && !slices.Contains(all, strings.ToLower(r.name)) {
		t.Skipf("needs %s: run `make test`, or `eval \"$(make -s brokers)\"` first", r.name)
	}
}

// requireProgram finds a program, or fails the test.
func requireProgram(t testing.TB, r recipe) program {
	t.Helper()
	required(t, r)
	p, err := r.find(t.Context())
	if err != nil {
		t.Fatalf("%s=%s: %v", Required, os.Getenv(Required), err)
	}
	return p
}

// SharedRedis returns the host:port of the Redis server that all tests of this run
// share; a test works in a namespace of its own there, and leaves others' alone. It
// skips the test if brokers are not required, and fails it if the server does not
// answer.
func SharedRedis(t testing.TB) string {
	t.Helper()
	required(t, redisRecipe())
	address := os.Getenv(RedisAddress)
	if address == "" {
		t.Fatalf("%s is set and %s is not: run `make test`, or `eval \"$(make -s brokers)\"` first", Required, RedisAddress)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := ask(ctx, address, nil, "PING"); err != nil {
		t.Fatalf("%s=%s does not answer (%v): `eval \"$(make -s brokers)\"` starts it again", RedisAddress, address, err)
	}
	return address
}

// RequireRedis starts a Redis server for this test alone, and takes it down when the
// test ends. It skips the test if brokers are not required, and fails it if there is no
// server to be had.
func RequireRedis(t testing.TB, opts RedisOptions) *Redis {
	t.Helper()
	p := requireProgram(t, redisRecipe())
	r, err := startRedis(t.Context(), p, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leave(t, r) })
	return r
}

// leave takes down what a test started, and shows what its servers said if it failed.
func leave(t testing.TB, servers ...*Redis) {
	if t.Failed() {
		for _, s := range servers {
			t.Logf("%s on port %d said:\n%s", s.spec.name, s.spec.port, s.Log())
		}
	}
	if err := servers[0].Close(); err != nil {
		t.Errorf("take brokers down: %v", err)
	}
}

// RequireRedisCluster starts a Redis cluster of three masters for this test alone, and
// takes it down when the test ends. Like RequireRedis it skips or fails the test.
func RequireRedisCluster(t testing.TB) *RedisCluster {
	t.Helper()
	p := requireProgram(t, redisRecipe())
	c, err := startRedisCluster(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leave(t, c.nodes...) })
	return c
}

// RequireRedisSentinel starts a Redis master, a replica and a sentinel for this test
// alone, and takes them down when the test ends. Like RequireRedis it skips or fails
// the test.
func RequireRedisSentinel(t testing.TB) *RedisSentinel {
	t.Helper()
	p := requireProgram(t, redisRecipe())
	s, err := startRedisSentinel(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leave(t, append(s.servers, s.sentinel)...) })
	return s
}
