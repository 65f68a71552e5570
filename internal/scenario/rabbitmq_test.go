package scenario

import (
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
)

// rabbitMQBroker has its delays and claims lent, as is recommended.
func rabbitMQBroker() broker {
	return broker{
		name: "rabbitmq",
		store: func(t *testing.T) store {
			at := brokers.SharedRabbitMQ(t)
			return rabbitMQStore(t, at, at)
		},
		serve: serveRabbitMQ,
		lease: 3 * time.Second,
		// The management API has numbers every five seconds.
		late:      6 * time.Second,
		unbounded: true,
	}
}

// serveRabbitMQ starts a RabbitMQ.
func serveRabbitMQ(t *testing.T) *server {
	r := brokers.RequireRabbitMQ(t, brokers.RabbitMQOptions{})
	proxy := brokers.StartProxy(t, r.Addr())
	return &server{Server: r.Server, proxy: proxy, store: rabbitMQStore(t, proxy.Addr(), r.Addr())}
}

// rabbitMQStore is a prefix of its own on a server, whose management API is beside
// another address.
func rabbitMQStore(t *testing.T, addr, beside string) store {
	settings := url.Values{
		"prefix":     {"scenario-" + strings.ToLower(rand.Text()[:10])},
		"management": {brokers.RabbitMQManagement(beside)},
		"ladder":     {"off"},
	}
	return store{Address: brokers.RabbitMQURL(addr) + "?" + settings.Encode(), Lend: embeddedAddress(t)}
}
