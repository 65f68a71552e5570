package scenario

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/redis/go-redis/v9"
)

// redisAddress is a namespace on the server that all tests share, in the fragment of
// its URL.
func redisAddress(t *testing.T) string {
	return "redis://" + brokers.SharedRedis(t) + "#scenario-" + strings.ToLower(rand.Text()[:10])
}

// serveRedis starts a Redis that has on disk what it confirms.
func serveRedis(t *testing.T) *server {
	r := brokers.RequireRedis(t, brokers.RedisOptions{Args: []string{"--appendfsync", "always"}})
	proxy := brokers.StartProxy(t, r.Addr())
	return &server{
		Server: r.Server, proxy: proxy,
		direct: "redis://" + r.Addr() + "#scenario", address: "redis://" + proxy.Addr() + "#scenario",
	}
}

func splitRedis(address string) (at, namespace string) {
	at, namespace, _ = strings.Cut(address, "#")
	return at, namespace
}

// redisStage is a stage on a Redis, with a client that looks into it.
type redisStage struct {
	*stage
	redis *redis.Client
	in    string // the namespace
}

// onRedis runs a scenario that only Redis can have, in a namespace of its own.
func onRedis(t *testing.T) *redisStage {
	t.Helper()
	address := redisAddress(t)
	return newRedisStage(t, newStage(t, named(t, "redis"), address, nil), address)
}

// onRedisServer does, on a server of its own.
func onRedisServer(t *testing.T) (*redisStage, *server) {
	t.Helper()
	b := named(t, "redis")
	on := b.serve(t)
	return newRedisStage(t, newStage(t, b, on.address, nil), on.direct), on
}

func newRedisStage(t *testing.T, s *stage, address string) *redisStage {
	t.Helper()
	at, namespace := splitRedis(address)
	options, err := redis.ParseURL(at)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return &redisStage{stage: s, redis: client, in: namespace}
}

func named(t *testing.T, name string) broker {
	t.Helper()
	for _, b := range all() {
		if b.name == name {
			return b
		}
	}
	t.Fatalf("no broker %q", name)
	return broker{}
}

// stream is the key of a queue, and workers the group that reads it.
func (s *redisStage) stream(queue string) string { return "{" + s.in + "}:q:" + queue }

const workers = "workers"

// do sends a command that must succeed.
func (s *redisStage) do(words ...any) any {
	s.t.Helper()
	reply, err := s.redis.Do(s.t.Context(), words...).Result()
	if err != nil {
		s.t.Fatalf("%v: %v", words, err)
	}
	return reply
}

// consumers returns the names of a queue's consumers.
func (s *redisStage) consumers(queue string) []string {
	s.t.Helper()
	list, err := s.redis.XInfoConsumers(s.t.Context(), s.stream(queue), workers).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, c := range list {
		names = append(names, c.Name)
	}
	return names
}
