package kafka

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Config says which Kafka cluster is used and how. The zero value is the cluster at
// localhost:9092, with three brokers or more: a single one needs a Replication of 1.
type Config struct {
	// Brokers are some brokers of the cluster, as host:port. The others are learned
	// from the first that answers. Defaults to localhost:9092.
	Brokers []string
	// TLS is how connections are encrypted. Without a ServerName each broker is asked
	// for its own. Defaults to none: connections are not encrypted.
	TLS *tls.Config
	// User and Password are what the brokers know this program by. Defaults to none.
	User, Password string
	// Mechanism is how they are told: "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512".
	// Defaults to "PLAIN".
	Mechanism string
	// SASL is any other way to be known to the brokers, a type of the client
	// segmentio/kafka-go. User and Password are then empty. Defaults to none.
	SASL sasl.Mechanism
	// Dial makes connections, without encryption. Defaults to those of package net.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Prefix begins the names of all topics: who uses the same one shares jobs. It has
	// letters, digits, dots, underscores and hyphens, at most 100; "q" and "dead" may
	// not stand alone between dots or underscores. Defaults to "backstage".
	Prefix string
	// Group is the consumer group of the workers. All workers of a prefix are in one,
	// or each group runs all jobs, and deletes what it has settled though another has
	// not. Defaults to Prefix.
	Group string
	// Partitions is how many partitions a topic of jobs is made with: the most workers
	// that a queue can have. One that exists keeps what it has. Defaults to 3.
	Partitions int
	// Replication is how many brokers have a copy of each topic that is made. With 3
	// or more, a job is stored when all but one of them have it. Defaults to 3; a
	// single broker can do 1.
	Replication int
	// MaxRecord is the size in bytes of the largest record: payload, headers and
	// failures. Topics are made so that they take it. Defaults to 2 MiB.
	MaxRecord int
	// Passive makes no topics, for users who may not: they must be there, as the
	// package comment lists them. Defaults to false.
	Passive bool
	// Timeout is how long a broker may take to accept a connection, or to answer a
	// request. Defaults to 10 seconds.
	Timeout time.Duration
}

const name = "kafka"

// checked returns the configuration with its defaults, or what is wrong with it.
func (c Config) checked() (Config, error) {
	if len(c.Brokers) == 0 {
		c.Brokers = []string{"localhost:9092"}
	}
	for _, b := range c.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			return c, setupError(fmt.Sprintf("the broker %q is no address", b), "write host:port")
		}
	}
	if c.Prefix == "" {
		c.Prefix = "backstage"
	}
	if err := checkPrefix(c.Prefix); err != nil {
		return c, err
	}
	if c.Group == "" {
		c.Group = c.Prefix
	}
	c.Partitions = orElse(c.Partitions, 3)
	c.Replication = orElse(c.Replication, 3)
	c.MaxRecord = orElse(c.MaxRecord, 2<<20)
	c.Timeout = orElse(c.Timeout, 10*time.Second)
	switch {
	case c.Partitions < 1:
		return c, setupError(fmt.Sprintf("Partitions is %d", c.Partitions), "leave it zero for 3")
	case c.Replication < 1 || c.Replication > 1<<15-1:
		return c, setupError(fmt.Sprintf("Replication is %d", c.Replication), "leave it zero for 3")
	case c.MaxRecord < 1<<10 || c.MaxRecord > 1<<30:
		return c, setupError(fmt.Sprintf("MaxRecord is %d", c.MaxRecord), "leave it zero for 2 MiB")
	case c.Timeout < time.Millisecond:
		return c, setupError(fmt.Sprintf("Timeout is %v", c.Timeout), "leave it zero for 10s")
	}
	return c.known()
}

// known sets how the brokers know this program.
func (c Config) known() (Config, error) {
	if c.User == "" {
		if c.Password != "" || c.Mechanism != "" {
			return c, setupError("there is a password or a mechanism and no user", "set User")
		}
		return c, nil
	}
	if c.SASL != nil {
		return c, setupError("User and SASL are both set", "set one of them")
	}
	var err error
	switch c.Mechanism {
	case "", "PLAIN":
		c.SASL = plain.Mechanism{Username: c.User, Password: c.Password}
	case "SCRAM-SHA-256":
		c.SASL, err = scram.Mechanism(scram.SHA256, c.User, c.Password)
	case "SCRAM-SHA-512":
		c.SASL, err = scram.Mechanism(scram.SHA512, c.User, c.Password)
	default:
		return c, setupError(fmt.Sprintf("the mechanism %q is not known", c.Mechanism), "write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, or set SASL")
	}
	if err != nil {
		return c, setupError("user and password cannot be used with "+c.Mechanism, "use characters that SCRAM allows") // err has the password
	}
	return c, nil
}

// inSync is how many brokers must have a record before it is stored.
func (c *Config) inSync() int { return max(1, c.Replication-1) }

// orElse returns the usual value for one that is not set.
func orElse[T comparable](value, usual T) T {
	var zero T
	if value == zero {
		return usual
	}
	return value
}

func setupError(problem, remedy string) error {
	return &provider.SetupError{Provider: name, Problem: problem, Remedy: remedy}
}

// answers answers a request; neither an answer nor an error leaves that to the brokers.
type answers func(kafkago.Request) (kafkago.Response, error)

// internals are what only this package's tests can set.
type internals struct {
	hook   func(point string) // called at each point at which a process may be killed
	answer answers            // answers in the brokers' place
}
