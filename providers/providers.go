// Package providers opens any provider by an address, for tools and examples. A
// program that knows its broker imports that one provider instead, and no other
// broker's client.
//
//	memory:                              gone with its process
//	embedded:jobs.db                     one SQLite file, relative
//	embedded:/var/lib/shop/jobs.db       or absolute
//	embedded:jobs.db?synchronous=normal  settings, as in the provider's Config
//	redis://user:password@host:6379/0    Redis Streams on one server, rediss with TLS
//	redis://host:7000?addr=host2:7001    on a cluster, by some of its nodes,
//	redis://host:7000?cluster=true       or by one
//	redis://host:26379?master_name=main  on what sentinels call the master
//	amqp://user:password@host/vhost      RabbitMQ, or amqps
package providers

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/backstage-go/backstage/providers/embedded"
	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime/provider"
)

// Open opens the provider at an address. It returns an error for an address that
// is not understood, as a whole or in a setting, and what the provider's own Open
// returns.
//
// The settings are synchronous=full|normal (embedded) and bound.QUEUE=N, the
// most unsettled jobs that a queue takes from clients (embedded, memory, redis). Those
// of Redis are namespace, tags=namespace|queue, wait_replicas, wait_timeout and
// max_dead, beside those that its client knows. Those of RabbitMQ are prefix, management (a URL), passive=true, ladder=off, consumer_timeout
// and node=HOST:PORT for each further node, beside those that its clients know.
func Open(ctx context.Context, address string) (*provider.Provider, error) {
	scheme, rest, found := strings.Cut(address, ":")
	if !found {
		return nil, fmt.Errorf("provider address %q has no scheme; known are memory:, embedded:FILE, redis://HOST and amqp://HOST", address)
	}
	path, query, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "?")
	settings, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("provider address %q: %w", address, err)
	}
	s := &reader{address: address, settings: settings}
	switch scheme {
	case "memory":
		bounds := s.bounds()
		if err := s.done(); err != nil {
			return nil, err
		}
		return memory.Open(memory.Config{Bounds: bounds})
	case "embedded":
		if path == "" {
			return nil, fmt.Errorf("provider address %q names no file; write embedded:FILE", address)
		}
		config := embedded.Config{Synchronous: s.synchronous(), Bounds: s.bounds()}
		if err := s.done(); err != nil {
			return nil, err
		}
		return embedded.Open(path, config)
	case "redis", "rediss":
		return openRedis(ctx, s)
	case "amqp", "amqps":
		return openRabbitMQ(ctx, s)
	}
	return nil, fmt.Errorf("provider address %q: unknown scheme %q; known are memory:, embedded:FILE, redis://HOST and amqp://HOST", address, scheme)
}

// reader takes settings out of an address and keeps the first that is wrong.
type reader struct {
	address  string
	settings url.Values
	err      error
}

func (s *reader) take(name string) string {
	value := s.settings.Get(name)
	s.settings.Del(name)
	return value
}

func (s *reader) wrong(name, value, want string) {
	if s.err == nil {
		s.err = fmt.Errorf("provider address %q: %s=%s: want %s", s.address, name, value, want)
	}
}

func (s *reader) synchronous() embedded.Synchronous {
	switch value := s.take("synchronous"); value {
	case "", "full":
		return embedded.Full
	case "normal":
		return embedded.Normal
	default:
		s.wrong("synchronous", value, "full or normal")
		return embedded.Full
	}
}

func (s *reader) bounds() map[string]int {
	bounds := make(map[string]int)
	for _, name := range s.names() {
		queue, ok := strings.CutPrefix(name, "bound.")
		if !ok {
			continue
		}
		value := s.take(name)
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			s.wrong(name, value, "a number of jobs")
		}
		bounds[queue] = n
	}
	return bounds
}

// done returns the first setting that is wrong, or one that is not known.
func (s *reader) done() error {
	if names := s.names(); s.err == nil && len(names) > 0 {
		return fmt.Errorf("provider address %q: unknown setting %q", s.address, names[0])
	}
	return s.err
}

func (s *reader) names() []string {
	var names []string
	for name := range s.settings {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
