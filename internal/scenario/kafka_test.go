package scenario

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
)

// kafkaBroker has its delays and claims lent, as it has to.
func kafkaBroker() broker {
	return broker{
		name:  "kafka",
		store: func(t *testing.T) store { return kafkaStore(t, brokers.SharedKafka(t)) },
		serve: serveKafka,
		// A session has six seconds at least, and a lease may be half of that.
		lease: 3 * time.Second,
		// A queue is known when its topic is there, which its first worker makes.
		late:      3 * time.Second,
		unbounded: true,
	}
}

// serveKafka starts a Kafka whose clients all go through the proxy.
func serveKafka(t *testing.T) *server {
	var proxy *brokers.Proxy
	k := brokers.RequireKafka(t, brokers.KafkaOptions{Advertise: func(at string) string {
		proxy = brokers.StartProxy(t, at)
		return proxy.Addr()
	}})
	return &server{Server: k.Server, proxy: proxy, store: kafkaStore(t, proxy.Addr())}
}

// kafkaStore is a prefix of its own on a server.
func kafkaStore(t *testing.T, addr string) store {
	prefix := "scenario-" + strings.ToLower(rand.Text()[:10])
	return store{Address: "kafka://" + addr + "?replication=1&prefix=" + prefix, Lend: embeddedAddress(t)}
}
