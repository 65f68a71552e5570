package scenario

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/providers"
	"github.com/backstage-go/backstage/providers/redisstreams"
	"github.com/backstage-go/backstage/runtime/provider"
)

// broker is what a scenario runs on. Which scenarios fit it is decided by what its
// provider says of itself, never by its name.
type broker struct {
	name string
	// address is where a test has a store of its own. It skips the test if there is no
	// such broker.
	address func(t *testing.T) string
	// open opens an address, and bounds queues by their names.
	open func(ctx context.Context, address string, bounds map[string]int) (*provider.Provider, error)
	// serve starts a server for one test, which may treat it badly. Nil if the broker
	// has no server.
	serve func(t *testing.T) *server
}

// server is a broker's server that may be treated badly.
type server struct {
	*brokers.Server
	proxy   *brokers.Proxy
	direct  string // the address of a store past the proxy
	address string // and through it
}

// all are the brokers that Backstage works on.
func all() []broker {
	return []broker{
		{name: "embedded", address: embeddedAddress, open: openEmbedded},
		{name: "redis", address: redisAddress, open: openRedis, serve: serveRedis},
	}
}

// onEach runs a scenario on each broker, in a store of its own.
func onEach(t *testing.T, scenario func(t *testing.T, s *stage)) {
	onEachBounded(t, nil, scenario)
}

// onEachBounded does, with bounds for queues.
func onEachBounded(t *testing.T, bounds map[string]int, scenario func(t *testing.T, s *stage)) {
	t.Parallel()
	for _, b := range all() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, newStage(t, b, b.address(t), bounds))
		})
	}
}

// onEachServer runs a scenario on each broker that has a server, with one of its own
// behind a proxy.
func onEachServer(t *testing.T, scenario func(t *testing.T, s *stage, on *server)) {
	t.Parallel()
	for _, b := range all() {
		if b.serve == nil {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			on := b.serve(t)
			scenario(t, newStage(t, b, on.address, nil), on)
		})
	}
}

// open opens an address of any broker.
func open(ctx context.Context, name, address string) (*provider.Provider, error) {
	for _, b := range all() {
		if b.name == name {
			return b.open(ctx, address, nil)
		}
	}
	return nil, fmt.Errorf("no broker %q", name)
}

func embeddedAddress(t *testing.T) string {
	return "embedded:" + filepath.Join(t.TempDir(), "jobs.db")
}

func openEmbedded(ctx context.Context, address string, bounds map[string]int) (*provider.Provider, error) {
	join := "?"
	for queue, n := range bounds {
		address += fmt.Sprintf("%sbound.%s=%d", join, queue, n)
		join = "&"
	}
	return providers.Open(ctx, address)
}

// needs skips a scenario that a broker does not fit.
func (s *stage) needs(fits bool, what string) {
	s.t.Helper()
	if !fits {
		s.t.Skipf("%s has no %s", s.provider.Name, what)
	}
}

func (s *stage) facts() provider.JobFacts { return s.provider.Jobs.Facts() }

func openRedis(ctx context.Context, address string, bounds map[string]int) (*provider.Provider, error) {
	at, namespace := splitRedis(address)
	return redisstreams.Open(ctx, redisstreams.Config{URL: at, Namespace: namespace, Bounds: bounds})
}
