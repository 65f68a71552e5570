package scenario

import (
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/redis/go-redis/v9"
)

func redisBroker() broker {
	return broker{
		name:  "redis",
		store: func(t *testing.T) store { return store{Address: redisAddress(t)} },
		serve: serveRedis,
	}
}

// redisAddress is a namespace on the server that all tests share.
func redisAddress(t *testing.T) string {
	return redisURL(brokers.SharedRedis(t))
}

// serveRedis starts a Redis that has on disk what it confirms.
func serveRedis(t *testing.T) *server {
	r := brokers.RequireRedis(t, brokers.RedisOptions{Args: []string{"--appendfsync", "always"}})
	proxy := brokers.StartProxy(t, r.Addr())
	return &server{Server: r.Server, proxy: proxy, store: store{Address: redisURL(proxy.Addr())}}
}

func redisURL(addr string) string {
	return "redis://" + addr + "/0?namespace=scenario-" + strings.ToLower(rand.Text()[:10])
}

// redisStage is a stage on a Redis, with a client that looks into it.
type redisStage struct {
	*stage
	redis *redis.Client
	in    string // the namespace
}

// onRedis makes a stage for what only Redis can have, in a namespace of its own.
func onRedis(t *testing.T) *redisStage {
	t.Helper()
	return newRedisStage(t, redisAddress(t))
}

// onRedisServer makes one on a server of its own.
func onRedisServer(t *testing.T) *redisStage {
	t.Helper()
	return newRedisStage(t, redisURL(brokers.RequireRedis(t, brokers.RedisOptions{}).Addr()))
}

func newRedisStage(t *testing.T, address string) *redisStage {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: u.Host})
	t.Cleanup(func() { _ = client.Close() })
	return &redisStage{stage: newStage(t, redisBroker(), store{Address: address}), redis: client, in: u.Query().Get("namespace")}
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
