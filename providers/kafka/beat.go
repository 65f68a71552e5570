package kafka

import (
	"encoding/binary"
	"fmt"
	"io"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// beat is a Heartbeat request of version 3 and its answer. The client's own goes to any
// broker instead of the group's coordinator, and takes the answer's code for a part of
// the time before it: this one writes and reads itself.
type beat struct {
	group string
	membership
	code kafkago.Error
}

const beatVersion = 3

// ApiKey says which request it is: protocol.Message.
//
//lint:ignore ST1003 the client names it so
func (*beat) ApiKey() protocol.ApiKey { return protocol.Heartbeat }

// Group says whose coordinator it is for: protocol.GroupMessage.
func (b *beat) Group() string { return b.group }

// Required says that it is written here: protocol.RawExchanger.
func (*beat) Required(map[protocol.ApiKey]int16) bool { return true }

// beatAnswer is how many bytes an answer has: correlation id, throttle time, code.
const beatAnswer = 4 + 4 + 2

// RawExchange writes the request and reads the answer: protocol.RawExchanger.
func (b *beat) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if _, err := rw.Write(b.request()); err != nil {
		return nil, err
	}
	var answer [4 + beatAnswer]byte
	if _, err := io.ReadFull(rw, answer[:]); err != nil {
		return nil, err
	}
	if size := binary.BigEndian.Uint32(answer[:]); size != beatAnswer {
		return nil, fmt.Errorf("an answer of %d bytes to a heartbeat: %w", size, io.ErrUnexpectedEOF)
	}
	return &beat{code: kafkago.Error(int16(binary.BigEndian.Uint16(answer[4+beatAnswer-2:])))}, nil
}

// request is the request with its size.
func (b *beat) request() []byte {
	r := make([]byte, 4, 64+len(b.group)+len(b.id))
	r = binary.BigEndian.AppendUint16(r, uint16(protocol.Heartbeat))
	r = binary.BigEndian.AppendUint16(r, beatVersion)
	r = binary.BigEndian.AppendUint32(r, 0)      // correlation id
	r = binary.BigEndian.AppendUint16(r, 0xffff) // no client id
	r = binary.BigEndian.AppendUint16(r, uint16(len(b.group)))
	r = append(r, b.group...)
	r = binary.BigEndian.AppendUint32(r, uint32(b.generation))
	r = binary.BigEndian.AppendUint16(r, uint16(len(b.id)))
	r = append(r, b.id...)
	r = binary.BigEndian.AppendUint16(r, 0xffff) // no instance id
	binary.BigEndian.PutUint32(r, uint32(len(r)-4))
	return r
}
