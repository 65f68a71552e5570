package brokers

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestKafkaComesBackWithItsData(t *testing.T) {
	t.Parallel()
	checkKafkaCrash(t)
}

// checkKafkaCrash looks for a topic that was made before a crash. It crashes and stops
// more than once, because tests do.
func checkKafkaCrash(t *testing.T) {
	k := RequireKafka(t, KafkaOptions{})
	address := k.Addr()
	if code := makeTopic(t, address, "kept"); code != 0 {
		t.Fatalf("making a topic is answered with %d", code)
	}
	for _, end := range []func() error{k.Kill, k.Kill, func() error { return k.Stop(t.Context()) }} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if checkTells(t, address) == nil {
			t.Fatal("a server that has ended answers")
		}
	}
	for range 2 { // the second time it is running
		if err := k.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		const exists = 36
		if code := makeTopic(t, address, "kept"); code != exists || k.Addr() != address {
			t.Errorf("after a restart making the topic again on %s is answered with %d; want %d, which says that it is there, on %s", k.Addr(), code, exists, address)
		}
	}
	for range 2 {
		if err := k.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

func TestPausedKafkaAnswersLater(t *testing.T) {
	t.Parallel()
	k := RequireKafka(t, KafkaOptions{Properties: []string{"num.partitions=1"}})
	if err := k.Pause(); err != nil {
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	untilSilent(t, func() error { return checkTells(t, k.Addr()) })
	if err := k.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := tellsVersions(t.Context(), k.Addr()); err != nil {
		t.Errorf("a server that went on does not answer: %v", err)
	}
	if err := k.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := k.Stop(t.Context()); err != nil {
		t.Errorf("a paused server does not end: %v", err)
	}
}

func TestKafkaThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	p := requireProgram(t, kafkaRecipe())
	_, err := startKafka(t.Context(), p, KafkaOptions{Properties: []string{"num.partitions=none"}})
	if err == nil || !strings.Contains(err.Error(), "num.partitions") {
		t.Errorf("a server with a wrong property: %v; want its own words", err)
	}
}

func TestSharedKafkaAnswers(t *testing.T) {
	t.Parallel()
	if err := tellsVersions(t.Context(), SharedKafka(t)); err != nil {
		t.Error(err)
	}
}

// checkTells checks whether a server answers within a short time.
func checkTells(t *testing.T, address string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return tellsVersions(ctx, address)
}

// makeTopic sends CreateTopics, and returns the code that the topic is answered with: 0
// if it was made.
func makeTopic(t *testing.T, address, topic string) uint16 {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	var request []byte
	short := func(n uint16) { request = binary.BigEndian.AppendUint16(request, n) }
	long := func(n uint32) { request = binary.BigEndian.AppendUint32(request, n) }
	long(0) // the length, once it is known
	short(19)
	short(2)
	long(1)
	short(0xffff) // no name of a client
	long(1)       // topic, its name, one partition and one copy
	short(uint16(len(topic)))
	request = append(request, topic...)
	long(1)
	short(1)
	long(0)                      // no copies placed by hand
	long(0)                      // no settings
	long(20_000)                 // milliseconds
	request = append(request, 0) // in earnest
	binary.BigEndian.PutUint32(request, uint32(len(request)-4))
	if _, err := conn.Write(request); err != nil {
		t.Fatal(err)
	}
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	// The number, the time that was held back, how many topics, and the topic's name.
	code := 4 + 4 + 4 + 2 + len(topic)
	if len(answer) < code+2 {
		t.Fatalf("CreateTopics is answered with %x", answer)
	}
	return binary.BigEndian.Uint16(answer[code:])
}
