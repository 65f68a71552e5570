package kafka

import (
	"context"
	"slices"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/describegroups"

	"github.com/backstage-go/backstage/providers/kafka/internal/tracker"
)

// standing is how a partition of a queue's jobs stands.
type standing struct {
	tracker.Summary
	partition int
	offset    int64   // the first that is not settled, by the group's last commit
	end       int64   // the next that will be given
	running   []int64 // what the workers of this process run, in order
	elsewhere bool    // others may run some of it, too
}

// unsettled is how many records are not settled. Offsets that have none, as those that
// end a transaction of somebody else's producer, are taken for records.
func (s *standing) unsettled() int64 { return max(0, s.end-s.offset-s.Settled) }

// ready is the first offset that may have a record which waits to start; false if that
// cannot be known, because others may run all that is there.
func (s *standing) ready() (offset int64, known bool) {
	at := s.offset
	if s.elsewhere {
		at = max(at, s.Mark)
	}
	for {
		next := s.Unsettled(at)
		if slices.Contains(s.running, next) {
			next++
		}
		if next == at {
			return at, !s.elsewhere || at < s.end || s.unsettled() == 0
		}
		at = next
	}
}

// standings are those of all partitions of a queue; none if it has no topic.
func (s *store) standings(ctx context.Context, queue string) ([]standing, error) {
	topic := s.names.jobs(queue)
	there, err := s.topics.there(ctx, topic)
	if err != nil || !there {
		return nil, explained(err)
	}
	n, err := s.topics.look(ctx, topic)
	if err != nil {
		return nil, explained(err)
	}
	all := make([]standing, n)
	partitions := make([]int, n)
	for i := range all {
		all[i].partition, partitions[i] = i, i
	}
	if err := s.committed(ctx, topic, partitions, all); err != nil {
		return nil, err
	}
	within, err := s.bounds(ctx, topic, partitions...)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].offset = max(all[i].offset, within[i].FirstOffset)
		all[i].end = within[i].LastOffset
	}
	return all, s.runs(ctx, queue, all)
}

// committed fills in what the group has on record.
func (s *store) committed(ctx context.Context, topic string, partitions []int, all []standing) error {
	return s.insist(ctx, func(ctx context.Context) error {
		r, err := s.client.OffsetFetch(ctx, &kafkago.OffsetFetchRequest{GroupID: s.cfg.Group, Topics: map[string][]int{topic: partitions}})
		if err == nil {
			err = r.Error
		}
		if err != nil {
			return err
		}
		for _, p := range r.Topics[topic] {
			if p.Error != nil {
				return p.Error
			}
			one := &all[p.Partition]
			one.offset = max(0, p.CommittedOffset) // -1: nothing is on record
			if one.Summary, err = tracker.Read(one.offset, p.Metadata, time.Now().UnixMilli()); err != nil {
				one.Summary = tracker.Summary{Mark: one.offset} // somebody else's: only the offset counts
			}
		}
		return nil
	})
}

// runs fills in what runs here, and whether others may run something, too.
func (s *store) runs(ctx context.Context, queue string, all []standing) error {
	ours := make(map[int]bool)
	for _, sub := range s.subscriptions() {
		for partition, offsets := range sub.running(queue) {
			if partition < len(all) {
				ours[partition] = true
				all[partition].running = append(all[partition].running, offsets...)
			}
		}
	}
	if len(ours) == len(all) {
		return nil
	}
	members, err := s.members(ctx)
	for i := range all {
		all[i].elsewhere = !ours[i] && members > 0
	}
	return err
}

// members is how many members the group has.
func (s *store) members(ctx context.Context) (n int, err error) {
	err = s.insist(ctx, func(ctx context.Context) error {
		answer, err := s.wires.RoundTrip(ctx, addresses(s.cfg.Brokers), &describegroups.Request{Groups: []string{s.cfg.Group}})
		if err != nil {
			return err
		}
		n = 0
		for _, group := range answer.(*describegroups.Response).Groups {
			if code := kafkago.Error(group.ErrorCode); code != 0 && code != kafkago.GroupIdNotFound {
				return code
			}
			n += len(group.Members)
		}
		return nil
	})
	return n, err
}
