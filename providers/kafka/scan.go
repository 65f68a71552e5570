package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// Of each request that reads for a look through a topic.
const (
	scanBytes = 8 << 20
	scanWait  = 500 * time.Millisecond
)

// bounds are the offsets of some partitions: the first that is there, and the next that
// will be given.
func (s *store) bounds(ctx context.Context, topic string, partitions ...int) (found map[int]kafkago.PartitionOffsets, err error) {
	err = s.insist(ctx, func(ctx context.Context) error {
		found, err = s.boundsOnce(ctx, topic, partitions)
		return err
	})
	return found, err
}

func (s *store) boundsOnce(ctx context.Context, topic string, partitions []int) (map[int]kafkago.PartitionOffsets, error) {
	var asked []kafkago.OffsetRequest
	for _, p := range partitions {
		asked = append(asked, kafkago.FirstOffsetOf(p), kafkago.LastOffsetOf(p))
	}
	r, err := s.client.ListOffsets(ctx, &kafkago.ListOffsetsRequest{Topics: map[string][]kafkago.OffsetRequest{topic: asked}})
	if err != nil {
		return nil, err
	}
	found := make(map[int]kafkago.PartitionOffsets)
	for _, p := range r.Topics[topic] {
		if p.Error != nil {
			return nil, p.Error
		}
		found[p.Partition] = p
	}
	return found, nil
}

// scan shows the records of a partition from one offset to another, which is not
// shown, until look returns false. Records that are gone are left out.
func (s *store) scan(ctx context.Context, topic string, partition int, from, to int64, look func(*received) bool) error {
	for from < to {
		more := false
		if err := s.insist(ctx, func(ctx context.Context) (err error) {
			from, more, err = s.scanOnce(ctx, topic, partition, from, to, scanBytes, look)
			return err
		}); err != nil {
			return fmt.Errorf("read topic %s: %w", topic, err)
		}
		if !more {
			return nil
		}
	}
	return nil
}

// first returns the first record of a partition that is there from one offset to another;
// nil if there is none. The broker sends what was stored with it, and no more.
func (s *store) first(ctx context.Context, topic string, partition int, from, to int64) (found *received, err error) {
	err = s.insist(ctx, func(ctx context.Context) error {
		_, _, err := s.scanOnce(ctx, topic, partition, from, to, 1, func(r *received) bool {
			found = r
			return false
		})
		return err
	})
	return found, err
}

// scanOnce is one request of a scan, for about so many bytes. It returns the offset to read from next, also with
// an error.
func (s *store) scanOnce(ctx context.Context, topic string, partition int, from, to, most int64, look func(*received) bool) (next int64, more bool, err error) {
	r, err := s.client.Fetch(ctx, &kafkago.FetchRequest{Topic: topic, Partition: partition, Offset: from, MinBytes: 1, MaxBytes: most, MaxWait: scanWait})
	if err == nil {
		err = r.Error
	}
	if errors.Is(err, kafkago.OffsetOutOfRange) {
		return s.scanFromStart(ctx, topic, partition, from, to)
	}
	if err != nil {
		return from, false, err
	}
	next = from
	for {
		record, err := r.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return next, false, err
		}
		if record.Offset < from {
			continue
		}
		if record.Offset >= to {
			return to, false, nil
		}
		one, err := copied(record)
		if err != nil {
			return next, false, err
		}
		next = record.Offset + 1
		if !look(&one) {
			return next, false, nil
		}
	}
	if next == from && r.HighWatermark <= from {
		return next, false, nil // what was there is gone since
	}
	if next == from {
		next = max(from+1, r.LogStartOffset) // nothing of a batch is left
	}
	return next, true, nil
}

// scanFromStart says where a scan goes on when what it was to read next has been deleted.
func (s *store) scanFromStart(ctx context.Context, topic string, partition int, from, to int64) (next int64, more bool, err error) {
	within, err := s.boundsOnce(ctx, topic, []int{partition})
	if err != nil {
		return from, false, err
	}
	next = within[partition].FirstOffset
	return next, from < next && next < to, nil
}
