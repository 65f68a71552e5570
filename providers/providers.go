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
//	kafka://user:password@host:9092      Kafka
//	kafka://host?lend=embedded:held.db   with Delays and Claims of another one,
//	                                     as amqp too; query-escape its settings
package providers

import (
	"context"
	"errors"

	"github.com/backstage-go/backstage/providers/embedded"
	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime/provider"
)

// Open opens the provider at an address. It returns an error for an address that
// is not understood, as a whole or in a setting, and one that wraps what the
// provider's own Open returns. Neither shows the user, the password or the value of
// a setting in the address. The provider must be closed.
//
// The settings are:
//
//	bound.QUEUE=N              the most unsettled jobs that a queue takes from clients;
//	                           embedded, memory and redis
//	synchronous=full|normal    embedded
//	namespace, tags=namespace|queue, wait_replicas, wait_timeout, max_dead
//	                           redis, beside what its client knows
//	prefix, management (a URL), passive=true, ladder=off, consumer_timeout,
//	node=HOST:PORT for each further node
//	                           amqp, beside what its clients know
//	prefix, group, partitions, replication, max_record, passive=true,
//	broker=HOST:PORT for each further broker, tls=true, cacertfile,
//	certfile, keyfile, mechanism=PLAIN|SCRAM-SHA-256|SCRAM-SHA-512
//	                           kafka
//	lend (the address of a provider that lends Delays and Claims)
//	                           amqp and kafka
func Open(ctx context.Context, address string) (*provider.Provider, error) {
	a, err := parse(address)
	if err != nil {
		return nil, a.failed(err)
	}
	p, err := a.open(ctx)
	if err != nil {
		return nil, a.failed(err)
	}
	return p, nil
}

const known = "known are memory:, embedded:FILE, redis://HOST, amqp://HOST and kafka://HOST"

func (a *address) open(ctx context.Context) (*provider.Provider, error) {
	switch a.scheme {
	case "memory":
		return openMemory(a)
	case "embedded":
		return openEmbedded(a)
	case "redis", "rediss":
		return openRedis(ctx, a)
	case "kafka":
		return openKafka(ctx, a)
	default:
		return openRabbitMQ(ctx, a)
	}
}

func openMemory(a *address) (*provider.Provider, error) {
	config := memory.Config{Bounds: a.bounds()}
	if err := a.done(); err != nil {
		return nil, err
	}
	return memory.Open(config)
}

func openEmbedded(a *address) (*provider.Provider, error) {
	if a.path == "" {
		return nil, errors.New("names no file; write embedded:FILE")
	}
	config := embedded.Config{Bounds: a.bounds()}
	if a.choice("synchronous", "full", "normal") {
		config.Synchronous = embedded.Normal
	}
	if err := a.done(); err != nil {
		return nil, err
	}
	return embedded.Open(a.path, config)
}
