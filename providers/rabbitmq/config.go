package rabbitmq

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Config says which RabbitMQ is used and how. The zero value is the server at
// localhost:5672.
type Config struct {
	// URL is where the broker is: amqp://user:password@host:5672/vhost, or amqps://
	// with TLS, with the query parameters that RabbitMQ documents for its clients,
	// but for heartbeat, which follows from a worker's lease. Defaults to
	// amqp://guest:guest@localhost:5672/.
	URL string
	// Others are URLs of other nodes of the same cluster. All are tried in turn
	// whenever a connection is to be made. Defaults to none.
	Others []string
	// TLS is how connections to amqps URLs are encrypted. Defaults to what the URL
	// says, and the system's authorities.
	TLS *tls.Config

	// Prefix is the first part of the name of every queue and exchange: who uses the
	// same one shares jobs. Defaults to "backstage".
	Prefix string
	// Passive declares nothing, for users who may not: queues and exchanges must be
	// there, as the package comment lists them. Their arguments are compared only
	// with Management, because the broker ignores them here.
	Passive bool
	// NoLadder switches off the delays that the broker keeps by itself. Delays is
	// nil then, and must be lent by another store. Defaults to false.
	NoLadder bool
	// Management is the URL of the management API, http://user:password@host:15672,
	// of a user with the tag "monitoring" or more. It tells numbers that AMQP does
	// not, and policies that get in the way. Without a user the one of URL is taken.
	// Defaults to none: what only the API knows is unknown.
	Management string
	// ConsumerTimeout is the server's consumer_timeout: it takes all jobs from a
	// worker that has one for longer. AMQP does not tell it, so it has to be said
	// here when the server's is another; a worker with a task that may run longer
	// fails at start-up. Negative: the server has none. Defaults to 30 minutes, as the
	// server's does.
	ConsumerTimeout time.Duration
	// Timeout is how long the broker may take to accept a connection. Defaults to 10
	// seconds.
	Timeout time.Duration
}

const name = "rabbitmq"

// urlError takes the place of what the client says of a URL, which may show the password.
func urlError() error {
	return setupError("the URL is not understood", "write amqp://user:password@host:5672/vhost, with special characters escaped")
}

// The server's own.
const usualConsumerTimeout = 30 * time.Minute

// checked returns the configuration with its defaults, or what is wrong with it.
func (c Config) checked() (Config, error) {
	if c.URL == "" {
		c.URL = "amqp://guest:guest@localhost:5672/"
	}
	if c.Prefix == "" {
		c.Prefix = "backstage"
	}
	if c.ConsumerTimeout == 0 {
		c.ConsumerTimeout = usualConsumerTimeout
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Timeout < time.Millisecond {
		return c, setupError(fmt.Sprintf("Timeout is %v", c.Timeout), "leave it zero for 10s")
	}
	if len(c.Prefix) > 100 {
		return c, setupError(fmt.Sprintf("the prefix has %d bytes", len(c.Prefix)), "choose one of at most 100, because names in RabbitMQ have at most 255")
	}
	for _, u := range c.urls() {
		uri, err := amqp.ParseURI(u)
		if err != nil {
			return c, urlError()
		}
		if uri.Heartbeat != (amqp.URI{}).Heartbeat {
			return c, setupError("the URL sets a heartbeat", "remove it: the heartbeat follows from the worker's lease")
		}
	}
	if c.Management != "" {
		if _, err := c.managementURL(); err != nil {
			return c, err
		}
	}
	return c, nil
}

// managementURL reads the URL of the management API. What url.Parse has to say of it may
// show the password.
func (c *Config) managementURL() (*url.URL, error) {
	u, err := url.Parse(c.Management)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, setupError("the management URL is not understood", "write http://user:password@host:15672, with special characters escaped")
	}
	return u, nil
}

// urls are all nodes.
func (c *Config) urls() []string { return append([]string{c.URL}, c.Others...) }

func setupError(problem, remedy string) error {
	return &provider.SetupError{Provider: name, Problem: problem, Remedy: remedy}
}

// internals are what only this package's tests can set.
type internals struct {
	hook   func(point string) // called at each point at which a process may be killed
	levels int                // of the ladder that are declared at start-up; 0: the usual number
	youth  time.Duration      // how long a new queue is not used; 0: as long as it should
	plain  bool               // writes are not gathered, to measure what that gains
}
