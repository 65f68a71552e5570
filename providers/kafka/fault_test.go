package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/produce"

	"github.com/backstage-go/backstage/runtime/provider"
)

// refuse answers requests to store records in a partition with codes, one after the
// other, and then leaves them to the broker.
func (c *cluster) refuse(partition int, codes ...kafkago.Error) {
	var mu sync.Mutex
	before := c.in.answer
	c.in.answer = func(request kafkago.Request) (kafkago.Response, error) {
		r, ok := request.(*produce.Request)
		if ok && int(r.Topics[0].Partitions[0].Partition) == partition {
			mu.Lock()
			defer mu.Unlock()
			if len(codes) > 0 {
				code := codes[0]
				if codes = codes[1:]; code == 0 {
					return nil, io.ErrUnexpectedEOF
				}
				return &produce.Response{Topics: []produce.ResponseTopic{{Topic: r.Topics[0].Topic,
					Partitions: []produce.ResponsePartition{{Partition: int32(partition), ErrorCode: int16(code)}}}}}, nil
			}
		}
		if before != nil {
			return before(request)
		}
		return nil, nil
	}
}

func TestWhatTheBrokerSaysDecides(t *testing.T) {
	t.Parallel()
	for code, want := range map[kafkago.Error]provider.Outcome{
		kafkago.UnknownTopicOrPartition:      provider.OutcomeStored,
		kafkago.LeaderNotAvailable:           provider.OutcomeStored,
		kafkago.NotLeaderForPartition:        provider.OutcomeStored,
		kafkago.NotEnoughReplicas:            provider.OutcomeStored,
		kafkago.KafkaStorageError:            provider.OutcomeStored,
		kafkago.NotEnoughReplicasAfterAppend: provider.OutcomeUnknown,
		kafkago.RequestTimedOut:              provider.OutcomeUnknown,
		kafkago.Unknown:                      provider.OutcomeUnknown,
		kafkago.OutOfOrderSequenceNumber:     provider.OutcomeUnknown, // the table does not have it
		kafkago.MessageSizeTooLarge:          provider.OutcomeRefused,
		kafkago.TopicAuthorizationFailed:     provider.OutcomeRefused,
		kafkago.InvalidRecord:                provider.OutcomeRefused,
	} {
		t.Run(fmt.Sprint(int(code)), func(t *testing.T) {
			t.Parallel()
			c := sharedCluster(t)
			c.cfg.Partitions = 1
			c.refuse(0, code, code, code)
			s, _ := c.open()
			stored := s.Publish(t.Context(), someJobs(1, "q"), provider.PublishOptions{})
			if stored[0].Outcome != want {
				t.Errorf("%v: %s, %v; want %s", code, stored[0].Outcome, stored[0].Err, want)
			}
			if want != provider.OutcomeStored && !errors.Is(stored[0].Err, code) {
				t.Errorf("%v: the error is %v, and does not say so", code, stored[0].Err)
			}
		})
	}
}

func TestNothingOfTheTableIsTwice(t *testing.T) {
	t.Parallel()
	seen := make(map[kafkago.Error]bool)
	for _, f := range faults() {
		if seen[f.code] || f.problem == "" || f.remedy == "" {
			t.Errorf("%v is in the table twice, or without words", f.code)
		}
		seen[f.code] = true
	}
}

func TestJobsOfOneKeyKeepTheirOrderWhenAPartitionFails(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	c.refuse(0, kafkago.NotLeaderForPartition, kafkago.NotEnoughReplicas, kafkago.LeaderNotAvailable, kafkago.NotEnoughReplicas)
	s, _ := c.open()
	var group sync.WaitGroup
	var last sync.Mutex
	n := 0
	for range 20 {
		group.Go(func() {
			for range 10 {
				last.Lock() // one call after the other is begun
				j := aJob(fmt.Sprint(n), "q")
				j.OrderingKey = "k"
				n++
				p, err := s.newParcel(&j)
				if err != nil {
					t.Error(err)
				}
				if _, err := s.topics.ready(t.Context(), s.jobsOf("q")); err != nil {
					t.Error(err)
				}
				call := newCall([]*parcel{p})
				s.publisher.outlet(s.jobsOf("q"), 1).add([]*parcel{p})
				last.Unlock()
				call.wait(t.Context(), []*parcel{p})
				if p.outcome != provider.OutcomeStored {
					t.Errorf("%s: %s, %v", j.ID, p.outcome, p.err)
				}
			}
		})
	}
	group.Wait()
	for i, r := range inTopic(t, s, "q")[0] {
		if j, _ := provider.Unmarshal(r.value); j.ID != fmt.Sprint(i) {
			t.Fatalf("job %s is at %d", j.ID, i)
		}
	}
}

func TestJobsWithoutAKeyGoAroundAPartitionThatFails(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	down := make([]kafkago.Error, 1000)
	for i := range down {
		down[i] = kafkago.LeaderNotAvailable
	}
	c.refuse(1, down...)
	s, _ := c.open()
	publish(t, s, someJobs(30, "q")...)
	for range 20 {
		publish(t, s, aJob("one", "q"))
	}
	records := inTopic(t, s, "q")
	if n := len(records[0]) + len(records[2]); n != 50 || len(records[1]) != 0 {
		t.Errorf("%d, %d and %d jobs are in the partitions, want 50 in the first and last", len(records[0]), len(records[1]), len(records[2]))
	}
}

func TestATopicThatTakesNothingIsTold(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	down := make([]kafkago.Error, 9)
	for i := range down {
		down[i] = kafkago.NotEnoughReplicas
	}
	c.refuse(0, down...)
	s, log := c.open()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.provider.Events.Observe(func(e provider.Event) {
		if e.Kind == provider.Blocked {
			cancel()
		}
	})
	stored := s.Publish(ctx, someJobs(1, "q"), provider.PublishOptions{})
	if stored[0].Outcome != provider.OutcomeRefused || !errors.Is(stored[0].Err, kafkago.NotEnoughReplicas) || !errors.Is(stored[0].Err, context.Canceled) {
		t.Errorf("%s, %v; want refused, because it was cancelled and for what it waited", stored[0].Outcome, stored[0].Err)
	}
	if err := s.provider.Health(t.Context()); !errors.Is(err, kafkago.NotEnoughReplicas) {
		t.Errorf("Health: %v", err)
	}
	publish(t, s, aJob("after", "q"))
	if !log.has(provider.Unblocked, "takes jobs again") {
		t.Errorf("events: %+v", log.all)
	}
	if err := s.provider.Health(t.Context()); err != nil {
		t.Errorf("Health afterwards: %v", err)
	}
}

func TestAConnectionThatEndsBeforeTheAnswerLeavesDoubt(t *testing.T) {
	t.Parallel()
	r := &recordReader{parcels: []*parcel{{value: []byte("x")}}}
	if r.begun.Load() {
		t.Error("a request that was not written is begun")
	}
	if _, err := r.ReadRecord(); err != nil || !r.begun.Load() {
		t.Errorf("after it is written: %v", err)
	}
	if _, err := r.ReadRecord(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last record: %v, want EOF", err)
	}
}
