package kafka

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// deleteRecords deletes the records of a partition before an offset: from then on the
// log begins there, and the broker frees the space when a whole segment is before it.
// It needs the permission DELETE on the topic; without, the answer is
// kafkago.TopicAuthorizationFailed. Records that are deleted already are no error.
func (s *store) deleteRecords(ctx context.Context, topic string, partition int, before int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	request := &deletion{topic: topic, partition: int32(partition), before: before, within: int32(s.cfg.Timeout.Milliseconds() / 2)}
	answer, err := s.wires.RoundTrip(ctx, addresses(s.cfg.Brokers), request)
	if err != nil {
		return fmt.Errorf("delete records of topic %s: %w", topic, err)
	}
	if code := answer.(*deletion).code; code != 0 {
		return fmt.Errorf("delete records of topic %s: %w", topic, code)
	}
	return nil
}

// deletion is a DeleteRecords request of version 0 and its answer, which the client
// does not know: it writes and reads itself.
type deletion struct {
	topic     string
	partition int32
	before    int64
	within    int32 // milliseconds
	code      kafkago.Error
}

// ApiKey says which request it is: protocol.Message.
//
//lint:ignore ST1003 the client names it so
func (*deletion) ApiKey() protocol.ApiKey { return protocol.DeleteRecords }

// Broker is the partition's leader: protocol.BrokerMessage.
func (d *deletion) Broker(cluster protocol.Cluster) (protocol.Broker, error) {
	topic, ok := cluster.Topics[d.topic]
	if !ok {
		return protocol.Broker{}, protocol.NewErrNoTopic(d.topic)
	}
	partition, ok := topic.Partitions[d.partition]
	if !ok {
		return protocol.Broker{}, protocol.NewErrNoPartition(d.topic, d.partition)
	}
	broker, ok := cluster.Brokers[partition.Leader]
	if !ok {
		return protocol.Broker{}, protocol.NewErrNoLeader(d.topic, d.partition)
	}
	return broker, nil
}

// Required says that it is written here: protocol.RawExchanger.
func (*deletion) Required(map[protocol.ApiKey]int16) bool { return true }

// mostAnswer is far more bytes than an answer for one partition has.
const mostAnswer = 64 << 10

// RawExchange writes the request and reads the answer: protocol.RawExchanger.
func (d *deletion) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if _, err := rw.Write(d.request()); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(rw, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > mostAnswer {
		return nil, fmt.Errorf("an answer of %d bytes", size)
	}
	answer := make([]byte, size)
	if _, err := io.ReadFull(rw, answer); err != nil {
		return nil, err
	}
	return d.answered(answer)
}

// request is the request with its size: a head, then one topic with one partition.
func (d *deletion) request() []byte {
	b := make([]byte, 4, 64+len(d.topic))
	b = binary.BigEndian.AppendUint16(b, uint16(protocol.DeleteRecords))
	b = binary.BigEndian.AppendUint16(b, 0) // version
	b = binary.BigEndian.AppendUint32(b, 0) // correlation id
	b = binary.BigEndian.AppendUint16(b, 0) // no client id
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint16(b, uint16(len(d.topic)))
	b = append(b, d.topic...)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(d.partition))
	b = binary.BigEndian.AppendUint64(b, uint64(d.before))
	b = binary.BigEndian.AppendUint32(b, uint32(d.within))
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// answered reads an answer: correlation id, throttle time, one topic, one partition
// with its new beginning and a code.
func (d *deletion) answered(b []byte) (protocol.Message, error) {
	size := 4 + 4 + 4 + 2 + len(d.topic) + 4 + 4 + 8 + 2
	if len(b) != size {
		return nil, fmt.Errorf("an answer of %d bytes where %d were to come: %w", len(b), size, net.ErrClosed)
	}
	return &deletion{code: kafkago.Error(int16(binary.BigEndian.Uint16(b[size-2:])))}, nil
}
