package kafka

import (
	"context"
	"errors"
	"io"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// record is what was read of a partition at an offset.
type record struct {
	offset int64
	job    provider.Job
	raw    []byte // instead of a job, if it is none
	err    error  // why it is none
	size   int
}

// fetched is what a partition answered.
type fetched struct {
	from    int64
	records []record
	skip    bool // there is no record at from, and later ones may come
}

const (
	// mostFetched bounds the bytes of one answer. One record that is larger comes all
	// the same.
	mostFetched = 1 << 20
	// longestPoll is how long a partition with nothing new may wait before it answers.
	longestPoll = 500 * time.Millisecond
)

// fetch reads a partition from an offset on. With no wait it answers at once, perhaps
// with nothing.
func (s *store) fetch(ctx context.Context, at spot, offset int64, wait time.Duration) (fetched, error) {
	request := &kafkago.FetchRequest{Topic: at.topic, Partition: at.number, Offset: offset,
		MinBytes: 1, MaxBytes: mostFetched, MaxWait: wait}
	if wait == 0 {
		request.MinBytes, request.MaxWait = 0, time.Millisecond
	}
	r, err := s.client.Fetch(ctx, request)
	if err != nil {
		return fetched{}, err
	}
	if r.Error != nil {
		return fetched{}, r.Error
	}
	got := fetched{from: offset}
	for {
		one, err := r.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return got, err
		}
		b, err := kafkago.ReadAll(one.Value)
		if err != nil {
			return got, err
		}
		if one.Offset < offset { // of a batch that began earlier
			continue
		}
		rec := record{offset: one.Offset, size: len(b)}
		if rec.job, rec.err = provider.Unmarshal(b); rec.err != nil {
			rec.raw = b
		}
		got.records = append(got.records, rec)
	}
	// What is there then is a mark of the broker's own, or what compaction has left.
	got.skip = len(got.records) == 0 && r.HighWatermark > offset
	return got, nil
}
