package kafka

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/providers/embedded"
	"github.com/backstage-go/backstage/providers/redisstreams"
	"github.com/backstage-go/backstage/runtime/provider"
	"github.com/backstage-go/backstage/runtime/provider/providertest"
)

// TestMain lets the suite start the test binary as another process.
func TestMain(m *testing.M) {
	if plan := os.Getenv(childVariable); plan != "" {
		child(plan)
		return
	}
	providertest.Main(m, func(address string) (*provider.Provider, error) {
		if !strings.HasPrefix(address, "kafka:") {
			return openLender(address)
		}
		s, err := openAddress(address)
		if err != nil {
			return nil, err
		}
		return s.provider, nil
	})
}

// openAddress opens kafka:PREFIX@SERVER, with all connections through SERVER: the
// server itself, or a proxy. Topics have one partition, so that the first worker of a
// queue has all of it, as the suite has to be able to say.
func openAddress(address string) (*store, error) {
	prefix, server, _ := strings.Cut(strings.TrimPrefix(address, "kafka:"), "@")
	c := &cluster{cfg: Config{Brokers: []string{server}, Prefix: prefix, Replication: 1, Partitions: 1}}
	c.through(server)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return open(ctx, c.cfg, c.in)
}

// opened knows the store of each provider that a harness opened.
type opened struct {
	mu     sync.Mutex
	stores map[*provider.Provider]*store
}

func (o *opened) open(address string) (*provider.Provider, error) {
	s, err := openAddress(address)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stores == nil {
		o.stores = make(map[*provider.Provider]*store)
	}
	o.stores[s.provider] = s
	return s.provider, nil
}

func (o *opened) drop(p *provider.Provider) {
	o.mu.Lock()
	s := o.stores[p]
	o.mu.Unlock()
	s.die()
}

// die cuts all connections for good, as the end of a process does, and lets the store
// know that others have what it had.
func (s *store) die() {
	s.wires.close()
	for _, sub := range s.subscriptions() {
		sub.member.cancel()
		sub.member.work.Wait()
		sub.mu.Lock()
		sub.member.id, sub.member.now = "", membership{}
		for _, p := range sub.parts {
			sub.loseLocked(p)
		}
		sub.mu.Unlock()
	}
}

// harness is a prefix of its own on a server that is shared, behind a proxy.
func harness(t *testing.T, server string) providertest.Harness {
	c := newCluster(t, server)
	proxy := brokers.StartProxy(t, server)
	address := "kafka:" + c.cfg.Prefix + "@" + proxy.Addr()
	lender := filepath.Join(t.TempDir(), "lender.db")
	var all opened
	return providertest.Harness{
		Open:          func() (*provider.Provider, error) { return all.open(address) },
		Address:       address,
		Lender:        func() (*provider.Provider, error) { return embedded.Open(lender, embedded.Config{}) },
		LenderAddress: "embedded:" + lender,
		Lease:         3 * time.Second,
		Drop:          all.drop,
		Outage: func() (func(), error) {
			proxy.Blackhole()
			proxy.Cut()
			return proxy.Resume, nil
		},
		Garbage: func(queue string, b []byte) error { return putRaw(t, c, queue, b) },
	}
}

// putRaw stores bytes that are no record.
func putRaw(t testing.TB, c *cluster, queue string, b []byte) error {
	client := &kafkago.Client{Addr: kafkago.TCP(c.server), Transport: &kafkago.Transport{Dial: new(net.Dialer).DialContext}}
	t.Cleanup(client.Transport.(*kafkago.Transport).CloseIdleConnections)
	r, err := client.Produce(t.Context(), &kafkago.ProduceRequest{Topic: names{c.cfg.Prefix}.jobs(queue), RequiredAcks: kafkago.RequireAll,
		Records: kafkago.NewRecordReader(kafkago.Record{Value: kafkago.NewBytes(b)})})
	if err != nil {
		return err
	}
	return r.Error
}

func TestProvider(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for real leases")
	}
	server := brokers.SharedKafka(t)
	providertest.Run(t, func(t *testing.T) providertest.Harness { return harness(t, server) })
}

// TestProviderWithRedis is the suite's second round with Redis as the lender, which
// users have.
func TestProviderWithRedis(t *testing.T) {
	t.Parallel()
	if testing.Short() || !soaks() {
		t.Skip("one of the long forms: BACKSTAGE_SOAK=1")
	}
	server, redis := brokers.SharedKafka(t), brokers.SharedRedis(t)
	providertest.Run(t, func(t *testing.T) providertest.Harness {
		h := harness(t, server)
		h.LenderAddress = "redis:" + redis + "#" + strings.ToLower(rand.Text()[:10])
		h.Lender = func() (*provider.Provider, error) { return openLender(h.LenderAddress) }
		return h
	})
}

// openLender opens what lends: a file, or a namespace of a Redis server.
func openLender(address string) (*provider.Provider, error) {
	kind, at, _ := strings.Cut(address, ":")
	switch kind {
	case "embedded":
		return embedded.Open(at, embedded.Config{})
	case "redis":
		server, namespace, _ := strings.Cut(at, "#")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return redisstreams.Open(ctx, redisstreams.Config{URL: "redis://" + server, Namespace: namespace, PromotionLease: 5 * time.Second})
	}
	return nil, fmt.Errorf("%q lends nothing", kind)
}
