package redisstreams

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
	"github.com/backstage-go/backstage/runtime/provider/providertest"
)

// TestMain lets the suite, and this package's own tests, start the test binary as
// another process.
func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // go-redis tells of each connection that it loses
	if plan := os.Getenv(childVariable); plan != "" {
		child(plan)
		return
	}
	providertest.Main(m, openAddress)
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// openAddress opens a namespace by a URL whose fragment names it, and perhaps how its
// keys are tagged.
func openAddress(address string) (*provider.Provider, error) {
	cfg, err := configOf(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, err := Open(ctx, cfg)
	if err == nil && cfg.Tags == TagQueue {
		// They are used as lent ones are, which the suite takes for a mistake where
		// nobody lends. Its second round has real lent ones.
		p.Claims = nil
	}
	return p, err
}

func configOf(address string) (Config, error) {
	at, namespace, _ := strings.Cut(address, "#")
	// Long enough to publish all that one reservation has on a busy machine: a
	// promoter that is late is another's to follow, and its jobs run twice.
	cfg := Config{URL: at, PromotionLease: 5 * time.Second}
	cfg.Namespace, namespace, _ = strings.Cut(namespace, "+")
	if namespace == "queue" {
		cfg.Tags = TagQueue
	}
	if _, err := url.Parse(at); err != nil {
		return cfg, err
	}
	return cfg, nil
}

// harness is a namespace of its own on a server or cluster that is shared.
func harness(at, how string) providertest.Harness {
	namespace := strings.ToLower(rand.Text()[:10])
	address, lender := at+"#"+namespace+how, at+"#"+namespace+"-lender"+how
	return providertest.Harness{
		Open:          func() (*provider.Provider, error) { return openAddress(address) },
		Lender:        func() (*provider.Provider, error) { return openAddress(lender) },
		Lease:         time.Second,
		Address:       address,
		LenderAddress: lender,
		Bound: func(queue string, n int) error {
			cfg, err := configOf(address)
			if err != nil {
				return err
			}
			cfg.Bounds = map[string]int{queue: n}
			p, err := Open(context.Background(), cfg)
			if err != nil {
				return err
			}
			return p.Close(context.Background())
		},
		Garbage: func(queue string, b []byte) error {
			cfg, err := configOf(address)
			if err != nil {
				return err
			}
			client, err := fromURL(cfg.URL)
			if err != nil {
				return err
			}
			defer client.Close()
			stream := newKeyring(cfg.Namespace, cfg.Tags).queue(scope{}, queue).stream
			return client.XAdd(context.Background(), &redis.XAddArgs{Stream: stream, Values: []any{field, b}}).Err()
		},
	}
}

func TestProvider(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real leases")
	}
	at := brokers.SharedRedis(t)
	providertest.Run(t, func(t *testing.T) providertest.Harness {
		switch {
		case strings.Contains(t.Name(), "/outage/"):
			return withOutage(t, at)
		case strings.Contains(t.Name(), "/facts/confirmed"), strings.Contains(t.Name(), "/facts/carried"):
			return withCrash(t)
		}
		return harness("redis://"+at, "")
	})
}

// withOutage is a harness behind a proxy that goes silent, and lets nobody in.
func withOutage(t *testing.T, at string) providertest.Harness {
	proxy := brokers.StartProxy(t, at)
	h := harness("redis://"+proxy.Addr(), "")
	h.Outage = func() (func(), error) {
		proxy.Blackhole()
		proxy.Cut()
		return proxy.Resume, nil
	}
	return h
}

// withCrash is a harness on a server of its own, which may be killed.
func withCrash(t *testing.T) providertest.Harness {
	server := brokers.RequireRedis(t, durable())
	h := harness("redis://"+server.Addr(), "")
	h.Crash = func() error { return errors.Join(server.Kill(), server.Restart(t.Context())) }
	return h
}

func TestProviderOnACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real leases")
	}
	at := clusterURL(brokers.RequireRedisCluster(t))
	providertest.Run(t, func(t *testing.T) providertest.Harness { return harness(at, "") })
}

// TestProviderWithASlotForEachQueue spreads the namespace over the cluster.
func TestProviderWithASlotForEachQueue(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real leases")
	}
	at := clusterURL(brokers.RequireRedisCluster(t))
	providertest.Run(t, func(t *testing.T) providertest.Harness { return harness(at, "+queue") })
}

func clusterURL(c *brokers.RedisCluster) string {
	addrs := c.Addrs()
	return fmt.Sprintf("redis://%s?addr=%s", addrs[0], strings.Join(addrs[1:], "&addr="))
}
