package scenario

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// broker is what a scenario runs on. Which scenarios fit it is decided by what its
// provider says of itself, never by its name.
type broker struct {
	name string
	// address is where a test has a store of its own, as providers.Open takes it. It
	// skips the test if there is no such broker.
	address func(t *testing.T) string
	// serve starts a server for one test, which may treat it badly. Nil if the broker
	// has no server.
	serve func(t *testing.T) *server
}

// server is a broker's server that may be treated badly.
type server struct {
	*brokers.Server
	proxy   *brokers.Proxy
	address string // of a store behind the proxy
}

// all are the brokers that Backstage works on.
func all() []broker {
	return []broker{
		{name: "embedded", address: embeddedAddress},
		{name: "redis", address: redisAddress, serve: serveRedis},
	}
}

func embeddedAddress(t *testing.T) string {
	return "embedded:" + filepath.Join(t.TempDir(), "jobs.db")
}

// bounded is an address with bounds for queues.
func bounded(address string, bounds map[string]int) string {
	for queue, n := range bounds {
		join := "?"
		if strings.Contains(address, "?") {
			join = "&"
		}
		address += fmt.Sprintf("%sbound.%s=%d", join, queue, n)
	}
	return address
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
			scenario(t, newStage(t, bounded(b.address(t), bounds)))
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
			scenario(t, newStage(t, on.address), on)
		})
	}
}

// needs skips a scenario that a broker does not fit.
func (s *stage) needs(fits bool, what string) {
	s.t.Helper()
	if !fits {
		s.t.Skipf("%s has no %s", s.provider.Name, what)
	}
}

func (s *stage) facts() provider.JobFacts { return s.provider.Jobs.Facts() }
