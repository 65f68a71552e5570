package brokers

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func kafkaRecipe() recipe {
	return recipe{
		name: "Kafka", variable: KafkaAddress,
		remedy:    "install Java 17 or newer and Maven, and let `make brokers` download Kafka",
		installed: installedKafka,
		packages:  []string{"default-jre-headless", "maven"},
		download:  downloadKafka,
		image:     "apache/kafka:" + kafkaVersion, command: kafkaJarsInImage,
		share: func(ctx context.Context, p program) (*Server, error) {
			k, err := startKafka(ctx, p, KafkaOptions{})
			if err != nil {
				return nil, err
			}
			return k.Server, nil
		},
	}
}

// KafkaOptions says what kind of Kafka server a test wants. The zero value is one node,
// broker and controller in one, with a small heap; new topics have four partitions, and
// topics are not made by using them.
type KafkaOptions struct {
	// Properties are further lines of server.properties, such as
	// "offsets.retention.minutes=1". They come last, so that they win.
	Properties []string
	// Advertise is given the host:port that the broker listens on, and returns the one
	// that it tells its clients, such as a proxy's. Defaults to the same.
	Advertise func(at string) string
	// Java are the arguments of the Java machine. Defaults to those of a server that
	// starts quickly and stays small; one that is measured should have others.
	Java []string
}

// Kafka is a Kafka server of a test's own.
type Kafka struct {
	*Server
}

// Close kills the server, and removes its folder. Closing twice is fine. Tests need not
// call it.
func (k *Kafka) Close() error { return k.on.close() }

// StartKafka starts a Kafka server for a program that is no test, such as one that
// measures. The program closes it; should it die before, the server ends as well. It
// does not install or download anything: a *MissingError says what to do.
func StartKafka(ctx context.Context, opts KafkaOptions) (*Kafka, error) {
	p, err := kafkaRecipe().find(ctx)
	if err != nil {
		return nil, err
	}
	return startKafka(ctx, p, opts)
}

// startKafka starts a server in a site of its own.
func startKafka(ctx context.Context, p program, opts KafkaOptions) (*Kafka, error) {
	s, on, err := p.open(2)
	if err != nil {
		return nil, err
	}
	k := &Kafka{Server: &Server{spec: kafkaSpec(p, s, opts), on: on}}
	if err := k.start(ctx); err != nil {
		return nil, errors.Join(err, on.close())
	}
	return k, nil
}

// kafkaLog is a configuration of Kafka's log, which is to say what goes wrong and no more.
const kafkaLog = `rootLogger.level=WARN
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=[%d] %p %m (%c)%n
`

// kafkaScript formats the folder before the first start, and becomes the server. A start
// that was killed while it formatted is made up for.
const kafkaScript = `set -e
jars=$1 cluster=$2
shift 2
set -- "$@" -Dlog4j2.configurationFile=log4j2.properties -Dkafka.logs.dir=. -cp "$jars/*"
if [ ! -e formatted ]; then
	java "$@" kafka.tools.StorageTool format --ignore-formatted --standalone --cluster-id="$cluster" --config server.properties
	: >formatted
fi
exec java "$@" kafka.Kafka server.properties`

// kafkaSpec is a node whose broker listens on the first port of a site, and whose
// controller on the second.
func kafkaSpec(p program, s *site, opts KafkaOptions) *spec {
	port := s.port(0)
	java := opts.Java
	if java == nil {
		java = []string{"-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
	}
	cluster := make([]byte, 16)
	rand.Read(cluster)
	return &spec{
		name: "kafka", port: port,
		files: map[string]string{
			"server.properties": kafkaProperties(p, port, s.port(1), opts),
			"log4j2.properties": kafkaLog,
		},
		command: func(place) []string {
			words := []string{"/bin/sh", "-c", kafkaScript, "kafka", p.path, base64.RawURLEncoding.EncodeToString(cluster)}
			return append(append(words, java...), "-Djava.awt.headless=true")
		},
		ready: func(ctx context.Context) error { return tellsVersions(ctx, local(port)) },
	}
}

// kafkaProperties are the lines of server.properties. On one node whatever Kafka keeps
// for itself has one copy.
func kafkaProperties(p program, port, controller int, opts KafkaOptions) string {
	bind, advertised := "127.0.0.1", local(port)
	if opts.Advertise != nil {
		advertised = opts.Advertise(advertised)
	}
	if p.image != "" {
		bind = "0.0.0.0"
	}
	lines := append([]string{
		"process.roles=broker,controller",
		"node.id=1",
		"controller.quorum.bootstrap.servers=" + local(controller),
		fmt.Sprintf("listeners=PLAINTEXT://%s:%d,CONTROLLER://%s:%d", bind, port, bind, controller),
		fmt.Sprintf("advertised.listeners=PLAINTEXT://%s,CONTROLLER://%s", advertised, local(controller)),
		"inter.broker.listener.name=PLAINTEXT",
		"controller.listener.names=CONTROLLER",
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"log.dirs=data",
		"num.partitions=4",
		"num.network.threads=2",
		"num.io.threads=2",
		"offsets.topic.replication.factor=1",
		"offsets.topic.num.partitions=1",
		"transaction.state.log.replication.factor=1",
		"transaction.state.log.min.isr=1",
		"transaction.state.log.num.partitions=1",
		"share.coordinator.state.topic.replication.factor=1",
		"share.coordinator.state.topic.min.isr=1",
		"share.coordinator.state.topic.num.partitions=1",
		"group.initial.rebalance.delay.ms=0",
		"auto.create.topics.enable=false",
	}, opts.Properties...)
	return strings.Join(lines, "\n") + "\n"
}

// tellsVersions returns nil if a broker at an address says which requests it knows: it
// does so once it takes part in its cluster.
func tellsVersions(ctx context.Context, address string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline := time.Now().Add(5 * time.Second)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = conn.SetDeadline(deadline)
	// A length, the key of ApiVersions, its version 0, a number that the answer repeats,
	// and no name of a client.
	const number = 0x6a6f6273
	request := []byte{0, 0, 0, 10, 0, 18, 0, 0}
	request = binary.BigEndian.AppendUint32(request, number)
	if _, err := conn.Write(append(request, 0xff, 0xff)); err != nil {
		return err
	}
	var answer [10]byte // a length, the number, an error's code
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	if got, code := binary.BigEndian.Uint32(answer[4:]), binary.BigEndian.Uint16(answer[8:]); got != number || code != 0 {
		return fmt.Errorf("it answers with %x", answer)
	}
	return nil
}

// SharedKafka returns the host:port of the Kafka server that all tests of this run share;
// a test's topics and groups have a prefix of their own there, and it leaves others'
// alone. It skips the test if brokers are not required, and fails it if the server does
// not answer.
func SharedKafka(t testing.TB) string {
	t.Helper()
	required(t, kafkaRecipe())
	address := os.Getenv(KafkaAddress)
	if address == "" {
		t.Fatalf("%s is set and %s is not: run `make test`, or `eval \"$(make -s brokers)\"` first", Required, KafkaAddress)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := tellsVersions(ctx, address); err != nil {
		t.Fatalf("%s=%s does not answer (%v): `eval \"$(make -s brokers)\"` starts it again", KafkaAddress, address, err)
	}
	return address
}

// RequireKafka starts a Kafka server for this test alone, and takes it down when the test
// ends. It skips the test if brokers are not required, and fails it if there is no server
// to be had.
func RequireKafka(t testing.TB, opts KafkaOptions) *Kafka {
	t.Helper()
	p := requireProgram(t, kafkaRecipe())
	k, err := startKafka(t.Context(), p, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s on port %d said:\n%s", k.spec.name, k.spec.port, k.Log())
		}
		if err := k.Close(); err != nil {
			t.Errorf("take the broker down: %v", err)
		}
	})
	return k
}
