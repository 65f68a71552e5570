package kafka

import (
	"errors"
	"fmt"
	"hash/fnv"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

var errDelay = errors.New("the job has a delay, and kafka keeps nothing for later: lend it Delays")

// newParcel makes a job's record: its key is the ordering key, its value the bytes of
// provider.Marshal.
func (s *store) newParcel(j *provider.Job) (*parcel, error) {
	if err := j.Check(); err != nil {
		return nil, err
	}
	if j.Delay > 0 {
		return nil, errDelay
	}
	body, err := provider.Marshal(j)
	if err != nil {
		return nil, err
	}
	if len(body) > s.cfg.MaxRecord {
		return nil, fmt.Errorf("the record has %d bytes, and Config.MaxRecord is %d", len(body), s.cfg.MaxRecord)
	}
	p := &parcel{value: body}
	if j.OrderingKey != "" {
		p.key = []byte(j.OrderingKey)
	}
	return p, nil
}

// partitionOf is the partition of an ordering key: its 32-bit FNV-1a hash, modulo the
// number of partitions. It never changes, or order would be lost where two versions
// publish.
func partitionOf(key []byte, partitions int) int {
	h := fnv.New32a()
	h.Write(key)
	return int(h.Sum32() % uint32(partitions))
}

// record is a parcel as the client sends it.
func (p *parcel) record() kafkago.Record {
	r := kafkago.Record{Headers: p.headers}
	if p.key != nil {
		r.Key = kafkago.NewBytes(p.key)
	}
	if p.value != nil {
		r.Value = kafkago.NewBytes(p.value)
	}
	return r
}

// around is what Kafka puts around a record, and more.
const around = 128

// size is how many bytes a parcel has in a request, and a little more.
func (p *parcel) size() int {
	n := around + len(p.key) + len(p.value)
	for _, h := range p.headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

// received is a record as it was read, with bytes of its own.
type received struct {
	offset     int64
	key, value []byte
	headers    []kafkago.Header
	at         int64 // milliseconds since 1970, by the clock of who stored it
}

func (r *received) header(key string) ([]byte, bool) {
	for _, h := range r.headers {
		if h.Key == key {
			return h.Value, true
		}
	}
	return nil, false
}

// copied copies a record out of the client's buffers.
func copied(r *kafkago.Record) (received, error) {
	key, err := kafkago.ReadAll(r.Key)
	if err != nil {
		return received{}, err
	}
	value, err := kafkago.ReadAll(r.Value)
	if err != nil {
		return received{}, err
	}
	return received{offset: r.Offset, key: key, value: value, headers: r.Headers, at: r.Time.UnixMilli()}, nil
}
