package scenario

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// broker is what a scenario runs on. Which scenarios fit it is decided by what its
// provider says of itself, never by its name.
type broker struct {
	name string
	// store is where a test has a store of its own. It skips the test if there is no
	// such broker.
	store func(t *testing.T) store
	// serve starts a server for one test, which may treat it badly. Nil if the broker
	// has no server.
	serve func(t *testing.T) *server
	// lease is the one that mortal workers have. Defaults to that of the others.
	lease time.Duration
	// late is how long its numbers may be those of before.
	late time.Duration
	// unbounded says that its queues have no bounds.
	unbounded bool
}

// server is a broker's server that may be treated badly.
type server struct {
	*brokers.Server
	proxy *brokers.Proxy
	store store // behind the proxy
}

// all are the brokers that Backstage works on.
func all() []broker {
	return []broker{
		embeddedBroker(),
		redisBroker(),
		rabbitMQBroker(),
		kafkaBroker(),
	}
}

func embeddedBroker() broker {
	return broker{name: "embedded", store: func(t *testing.T) store { return store{Address: embeddedAddress(t)} }}
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

// onEachBounded does, with bounds for queues where there are any.
func onEachBounded(t *testing.T, bounds map[string]int, scenario func(t *testing.T, s *stage)) {
	t.Parallel()
	for _, b := range all() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			at := b.store(t)
			if !b.unbounded {
				at.Address = bounded(at.Address, bounds)
			}
			scenario(t, newStage(t, b, at))
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
			s := newStage(t, b, on.store)
			s.ownServer = true
			scenario(t, s, on)
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
