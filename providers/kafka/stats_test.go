package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/providers/kafka/internal/tracker"
	"github.com/backstage-go/backstage/runtime/provider"
)

// commit puts on record what a tracker says, as a group without members.
func commit(t testing.TB, s *store, queue string, partition int, offset int64, metadata string) {
	t.Helper()
	topic := s.names.jobs(queue)
	err := s.insist(t.Context(), func(ctx context.Context) error {
		r, err := s.client.OffsetCommit(ctx, &kafkago.OffsetCommitRequest{GroupID: s.cfg.Group, GenerationID: -1,
			Topics: map[string][]kafkago.OffsetCommit{topic: {{Partition: partition, Offset: offset, Metadata: metadata}}}})
		if err == nil {
			err = r.Topics[topic][0].Error
		}
		return err
	})
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
}

// settled settles records of a partition, and puts that on record.
func settled(t testing.TB, s *store, queue string, partition, records int, offsets ...int64) {
	t.Helper()
	tr := tracker.New(tracker.Config{}, 0)
	for o := range int64(records) {
		tr.Add(o, "")
	}
	first, _ := tr.Commit(0, records)
	tr.Accepted(first.Number)
	for range records {
		run, ok := tr.Start(0)
		if !ok {
			t.Fatal("a record does not start")
		}
		for _, o := range offsets {
			if o == run.Offset {
				if _, err := tr.Settle(run); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	c, ok := tr.Commit(0, records)
	if !ok {
		t.Fatal("there is nothing to commit")
	}
	commit(t, s, queue, partition, c.Offset, c.Metadata)
}

func numbersOf(t testing.TB, s *store, queue string) provider.QueueStats {
	t.Helper()
	q, err := s.provider.Stats.Queue(t.Context(), queue)
	if err != nil {
		t.Fatalf("Stats.Queue: %v", err)
	}
	return q
}

func TestDepthIsWhatIsNotSettledWhileNobodyConsumes(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	s, _ := c.open()
	check := func(what string, depth int64) {
		t.Helper()
		q := numbersOf(t, s, "q")
		if q.Depth != provider.Measured(depth) || q.InFlight != provider.Measured[int64](0) {
			t.Errorf("%s: depth %v, %v in flight; want %d, 0", what, q.Depth, q.InFlight, depth)
		}
	}
	if q := numbersOf(t, s, "q"); q.Depth != provider.Measured[int64](0) || q.OldestReady != provider.Measured[time.Duration](0) {
		t.Errorf("a queue that does not exist: %+v", q)
	}
	before := time.Now()
	publish(t, s, someJobs(10, "q")...)
	check("nothing is on record", 10)
	settled(t, s, "q", 0, 10, 0, 1, 4, 5, 9)
	check("five are settled in any order", 5)
	if age, known := numbersOf(t, s, "q").OldestReady.Get(); !known || age <= 0 || age > time.Since(before) {
		t.Errorf("the oldest has been ready for %v, %t; want at most %v", age, known, time.Since(before))
	}
	commit(t, s, "q", 0, 3, "written by somebody else")
	check("the metadata is somebody else's", 7)
	if err := s.deleteRecords(t.Context(), s.names.jobs("q"), 0, 8); err != nil {
		t.Fatal(err)
	}
	check("the log begins after the offset", 2)
	settled(t, s, "q", 0, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	check("all are settled", 0)
	if age := numbersOf(t, s, "q").OldestReady; age != provider.Measured[time.Duration](0) {
		t.Errorf("of a queue with nothing ready the oldest is %v", age)
	}
}

func TestQueuesAreThoseOfThePrefix(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	s, _ := c.open()
	publish(t, s, aJob("1", "zebra"), aJob("2", "mail.v1"), aJob("3", "a_b"), aJob("4", "x.5F/y"))
	bury(t, s, aJob("5", "dead alone"))
	queues, err := s.provider.Stats.Queues(t.Context())
	if diff := cmp.Diff([]string{"a_b", "mail.v1", "x.5F/y", "zebra"}, queues); diff != "" || err != nil {
		t.Errorf("Queues: %v (-want +got):\n%s", err, diff)
	}
	if got := listed(t, s, provider.DeadFilter{}); len(got) != 1 {
		t.Errorf("dead letters of a queue without jobs: %v", got)
	}
}

func TestWhatOthersRunIsUnknown(t *testing.T) {
	t.Parallel()
	all := []standing{
		{offset: 10, end: 30, elsewhere: true, Summary: tracker.Summary{Mark: 20}},
		{offset: 5, end: 9, running: []int64{5, 6}, Summary: tracker.Summary{Mark: 9, Later: 1}},
	}
	var n numbers
	for i := range all {
		n.add(&all[i])
	}
	if want := (numbers{waiting: 21, running: 2, later: 1, elsewhere: true}); n != want {
		t.Errorf("numbers are %+v, want %+v", n, want)
	}
	for _, c := range []struct {
		of    standing
		first int64
		known bool
	}{
		{all[0], 20, true},
		{all[1], 7, true},
		{standing{offset: 10, end: 20, elsewhere: true, Summary: tracker.Summary{Mark: 20}}, 20, false},
		{standing{offset: 20, end: 20, elsewhere: true, Summary: tracker.Summary{Mark: 20}}, 20, true},
	} {
		if first, known := c.of.ready(); first != c.first || known != c.known {
			t.Errorf("ready of %+v is %d, %t; want %d, %t", c.of, first, known, c.first, c.known)
		}
	}
}
