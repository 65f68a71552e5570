package rabbitmq

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/providers/embedded"
	"github.com/backstage-go/backstage/providers/redisstreams"
	"github.com/backstage-go/backstage/runtime/provider"
	"github.com/backstage-go/backstage/runtime/provider/providertest"
)

// TestMain lets the suite start the test binary as another process.
func TestMain(m *testing.M) {
	providertest.Main(m, func(address string) (*provider.Provider, error) {
		if !strings.HasPrefix(address, "amqp:") {
			return openLender(address)
		}
		s, err := openAddress(address)
		if err != nil {
			return nil, err
		}
		return s.provider, nil
	})
}

// openAddress opens a virtual host by its URL, and perhaps the URL of a management API
// after a space. Of the ladder it makes one level at start-up, because checks make many.
func openAddress(address string) (*store, error) {
	at, management, _ := strings.Cut(address, " ")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return open(ctx, Config{URL: at, Management: management}, internals{levels: 1, youth: 1})
}

// ask calls the management API of the server at host:port.
func ask(t testing.TB, method, address, path, body string) {
	t.Helper()
	request, err := http.NewRequest(method, brokers.RabbitMQManagement(address)+"/api/"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("management API: %v", err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 && response.StatusCode != http.StatusNotFound {
		t.Fatalf("%s %s: %s", method, path, response.Status)
	}
}

// virtualHost makes a virtual host of a test's own, and returns its name.
func virtualHost(t testing.TB, server string) string {
	t.Helper()
	vhost := strings.ToLower(rand.Text()[:10])
	ask(t, http.MethodPut, server, "vhosts/"+vhost, "{}")
	ask(t, http.MethodPut, server, "permissions/"+vhost+"/guest", `{"configure":".*","write":".*","read":".*"}`)
	t.Cleanup(func() { ask(t, http.MethodDelete, server, "vhosts/"+vhost, "") })
	return vhost
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

// die cuts all connections for good, as the end of a process does.
func (s *store) die() {
	s.mu.Lock()
	s.severe = true
	s.mu.Unlock()
	links := []*link{s.publisher.link, s.admin.link}
	for _, sub := range s.subscriptions() {
		links = append(links, sub.link)
	}
	for _, l := range links {
		if c, _, _ := l.state(); c != nil {
			c.wire.fail(errEnded)
			<-c.closed
		}
	}
}

// harness is a virtual host of its own on a server that is shared, behind a proxy.
func harness(t *testing.T, server string) providertest.Harness {
	vhost := virtualHost(t, server)
	proxy := brokers.StartProxy(t, server)
	address := fmt.Sprintf("amqp://guest:guest@%s/%s %s", proxy.Addr(), vhost, brokers.RabbitMQManagement(server))
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
		Garbage: func(queue string, b []byte) error {
			return publishRaw(t, server, vhost, names{"backstage"}.jobs(queue), b)
		},
	}
}

func publishRaw(t testing.TB, server, vhost, queue string, b []byte) error {
	conn, err := amqp.Dial("amqp://guest:guest@" + server + "/" + url.PathEscape(vhost))
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	confirm, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", queue, true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: b})
	if err != nil {
		return err
	}
	if !confirm.Wait() {
		return fmt.Errorf("bytes for %s were refused", queue)
	}
	return nil
}

func TestProvider(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for real leases")
	}
	server := brokers.SharedRabbitMQ(t)
	providertest.Run(t, func(t *testing.T) providertest.Harness { return harness(t, server) })
}

// TestProviderWithRedis is the suite's second round with Redis as the lender, which
// users have.
func TestProviderWithRedis(t *testing.T) {
	t.Parallel()
	if testing.Short() || !soaks() {
		t.Skip("one of the long forms: BACKSTAGE_SOAK=1")
	}
	server, redis := brokers.SharedRabbitMQ(t), brokers.SharedRedis(t)
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
	if kind == "embedded" {
		return embedded.Open(at, embedded.Config{})
	}
	server, namespace, _ := strings.Cut(at, "#")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return redisstreams.Open(ctx, redisstreams.Config{URL: "redis://" + server, Namespace: namespace, PromotionLease: 5 * time.Second})
}
