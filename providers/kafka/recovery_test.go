package kafka

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// mortal are options with a lease that runs out soon.
func mortal(slots int, queues ...string) provider.SubscribeOptions {
	opts := options(slots, queues...)
	opts.Lease = 3 * time.Second
	return opts
}

func isLost(d *delivery) bool {
	select {
	case <-d.Lost():
		return true
	default:
		return false
	}
}

func TestAPartitionThatComesBackKeepsItsRuns(t *testing.T) {
	t.Parallel()
	server := brokers.SharedKafka(t)
	proxy := brokers.StartProxy(t, server)
	c := newCluster(t, server)
	c.cfg.Partitions = 1
	witness, _ := c.open()
	c.through(proxy.Addr())
	s, _ := c.open()
	publish(t, s, someJobs(2, "q")...)
	sub := subscribe(t, s, mortal(5, "q"))
	d := receive(t, sub, 1)[0]
	before, _ := sub.member.state()
	proxy.Blackhole()
	until(t, "the coordinator gives it up", func() bool {
		n, err := witness.members(t.Context())
		return err == nil && n == 0
	})
	proxy.Cut()
	proxy.Resume()
	until(t, "it is a member again, under another name", func() bool {
		now, _ := sub.member.state()
		return now.id != "" && now.id != before.id
	})
	ack(t, d)
	next := receive(t, sub, 1)[0]
	if isLost(d) || next.job.ID == d.job.ID || next.job.Counters.Crashes > 0 {
		t.Errorf("after an outage in which nobody else had the partition: lost %v, then %s with %+v; want it kept", isLost(d), next.job.ID, next.job.Counters)
	}
	ack(t, next)
}

func TestAPartitionIsGivenUpWhenNothingRunsOfIt(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 2
	first, _ := c.open()
	second, _ := c.open()
	for _, key := range []string{"a", "b"} { // one in each partition
		j := aJob(key, "q")
		j.OrderingKey = key
		publish(t, first, j)
	}
	if partitionOf([]byte("a"), 2) == partitionOf([]byte("b"), 2) {
		t.Fatal("both keys are in one partition")
	}
	rich := subscribe(t, first, options(5, "q"))
	running := receive(t, rich, 2)
	poor := subscribe(t, second, options(5, "q"))
	has := func(s *subscription) int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.lanes["q"].parts)
	}
	until(t, "the first worker empties a partition", func() bool {
		rich.mu.Lock()
		defer rich.mu.Unlock()
		for _, p := range rich.parts {
			if p.emptying {
				return true
			}
		}
		return false
	})
	if has(poor) > 0 {
		t.Errorf("the second worker has a partition of which a job runs elsewhere")
	}
	ack(t, running...)
	until(t, "each worker has one partition", func() bool { return has(rich) == 1 && has(poor) == 1 })
	publish(t, first, someJobs(8, "q")...)
	got := append(receive(t, rich, 4), receive(t, poor, 4)...)
	for _, d := range got {
		if d.job.Counters.Crashes > 0 {
			t.Errorf("%s counts %d crashes, and nobody died", d.job.ID, d.job.Counters.Crashes)
		}
	}
	ack(t, got...)
}

func TestATopicThatIsDeletedIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	s, log := c.open()
	publish(t, s, someJobs(3, "q")...)
	sub := subscribe(t, s, options(5, "q"))
	ack(t, receive(t, sub, 3)...)
	if _, err := s.client.DeleteTopics(t.Context(), &kafkago.DeleteTopicsRequest{Topics: []string{s.names.jobs("q")}}); err != nil {
		t.Fatal(err)
	}
	until(t, "the topic is made again", func() bool { return log.has(provider.GroupRecreated, "was deleted") })
	var ids []string
	for _, j := range someJobs(6, "q") {
		j.ID += "-new"
		ids = append(ids, j.ID)
		publish(t, s, j)
	}
	got := receive(t, sub, len(ids))
	ack(t, got...)
	for _, d := range got {
		if d.job.Counters.Crashes > 0 {
			t.Errorf("%s of the new topic counts %d crashes", d.job.ID, d.job.Counters.Crashes)
		}
	}
}

func TestRetentionThatOvertakesTheGroupIsTold(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	s, log := c.open()
	publish(t, s, someJobs(10, "q")...)
	sub := subscribe(t, s, options(5, "q"))
	ack(t, receive(t, sub, 1)...)
	if err := sub.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.deleteRecords(t.Context(), s.names.jobs("q"), 0, 4); err != nil {
		t.Fatal(err)
	}
	sub = subscribe(t, s, options(10, "q"))
	got := receive(t, sub, 6)
	ack(t, got...)
	if got[0].job.ID != "q-4" {
		t.Errorf("the first is %s; want q-4", got[0].job.ID)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, e := range log.all {
		if e.Kind == provider.RetentionOvertaken {
			if e.Count != 3 || e.Err == nil || e.Queue != "q" {
				t.Errorf("the event %+v; want three jobs and why", e)
			}
			return
		}
	}
	t.Errorf("three jobs were deleted and nobody was told: %+v", log.all)
}

func TestAGroupThatHasExpiredBeginsAtTheStartOfTheLog(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	s, log := c.open()
	publish(t, s, someJobs(5, "q")...)
	if err := s.deleteRecords(t.Context(), s.names.jobs("q"), 0, 3); err != nil { // settled by a group that nobody knows any more
		t.Fatal(err)
	}
	sub := subscribe(t, s, options(5, "q"))
	got := receive(t, sub, 2)
	ack(t, got...)
	if got[0].job.ID != "q-3" || !log.has(provider.GroupRecreated, "nothing on record") {
		t.Errorf("the first is %s; want q-3, and an event", got[0].job.ID)
	}
}

func TestWhatSomebodyElseCommittedIsNotMisread(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	s, log := c.open()
	publish(t, s, someJobs(5, "q")...)
	topic := s.names.jobs("q")
	until(t, "the group's offset is set by hand", func() bool {
		r, err := s.client.OffsetCommit(t.Context(), &kafkago.OffsetCommitRequest{GroupID: s.cfg.Group, GenerationID: -1,
			Topics: map[string][]kafkago.OffsetCommit{topic: {{Partition: 0, Offset: 2, Metadata: "moved by hand"}}}})
		return err == nil && r.Topics[topic][0].Error == nil
	})
	sub := subscribe(t, s, options(5, "q"))
	got := receive(t, sub, 3)
	ack(t, got...)
	if got[0].job.ID != "q-2" || !log.has(provider.Degraded, "somebody else") {
		t.Errorf("the first is %s; want q-2, and an event", got[0].job.ID)
	}
}

func TestPartitionsThatAreAddedAreServed(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	s, log := c.open()
	publish(t, s, someJobs(1, "q")...)
	sub := subscribe(t, s, options(5, "q"))
	ack(t, receive(t, sub, 1)...)
	addPartitions(t, s, "q", 3)
	until(t, "the worker has the new partitions", func() bool {
		sub.mu.Lock()
		defer sub.mu.Unlock()
		return len(sub.lanes["q"].parts) == 3
	})
	until(t, "somebody is told that the order of keys may have changed", func() bool { return log.has(provider.Degraded, "3 partitions now") })
	publish(t, s, someJobs(12, "q")...)
	ack(t, receive(t, sub, 12)...)
}

func TestSettledRecordsAreDeleted(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	s, _ := c.open()
	publish(t, s, someJobs(10, "q")...)
	sub := subscribe(t, s, options(10, "q"))
	ds := receive(t, sub, 10)
	ack(t, ds[:4]...)
	sub.mu.Lock()
	for _, p := range sub.parts {
		p.swept.at = time.Now().Add(-2 * lull)
	}
	sub.mu.Unlock()
	ack(t, ds[5:]...)
	until(t, "what is settled is deleted", func() bool {
		at, err := s.bounds(t.Context(), s.names.jobs("q"), 0)
		return err == nil && at[0].FirstOffset == 4
	})
	ack(t, ds[4])
	if err := sub.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	at, err := s.bounds(t.Context(), s.names.jobs("q"), 0)
	if err != nil || at[0].FirstOffset != 10 {
		t.Errorf("after the worker has ended the log begins at %d, %v; want 10, where all is settled", at[0].FirstOffset, err)
	}
}

func TestALeaseThatTheBrokersCannotDoIsRefused(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	s, _ := c.open()
	for lease, fits := range map[time.Duration]bool{time.Second: false, 3 * time.Second: true, 2 * time.Hour: false} {
		opts := options(1, "q")
		opts.Lease = lease
		ctx, cancel := context.WithTimeout(t.Context(), testPatience)
		sub, err := s.Subscribe(ctx, opts)
		if (err == nil) != fits {
			t.Errorf("a lease of %v: %v", lease, err)
		}
		if sub != nil && err == nil {
			_ = sub.Close(ctx)
		}
		cancel()
	}
}

// TestABrokerThatIsKilledUnderLoadLosesNothing kills the broker again and again while
// jobs are published and run.
func TestABrokerThatIsKilledUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it kills a broker of its own")
	}
	k := brokers.RequireKafka(t, brokers.KafkaOptions{})
	c := newCluster(t, k.Addr())
	l := newLedger(t, 50*time.Millisecond)
	client, _ := c.open()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var producers sync.WaitGroup
	for i := range 4 {
		producers.Go(func() { l.produce(ctx, client, "q", i) })
	}
	workers := map[string]*comer{"a": l.come(c, "a", "q", 10), "b": l.come(c, "b", "q", 10)}
	total := func() (n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.done)
	}
	kills := often(2, 10)
	for range kills {
		before := total()
		until(t, "jobs run", func() bool { return total() > before+20 })
		if err := k.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := k.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		back, before := time.Now(), total()
		until(t, "jobs run again", func() bool { return total() > before+20 })
		t.Logf("jobs ran again within %v of the broker's return", time.Since(back).Round(time.Millisecond))
	}
	cancel()
	producers.Wait()
	l.gather(c, workers, "q")
	if int(l.crashes) > kills { // a membership that ended with the broker looks like a worker's death
		t.Errorf("a job counts %d crashes, and the broker died %d times", l.crashes, kills)
	}
}

func TestAProviderThatIsClosedEndsASubscribeThatWaits(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	dead, _ := c.open()
	opts := options(1, "q")
	opts.Lease = 2 * testPatience // for which the group waits for it
	subscribe(t, dead, opts)
	dead.die()
	s, _ := c.open()
	done := make(chan error, 1)
	go func() {
		_, err := s.Subscribe(t.Context(), opts)
		done <- err
	}()
	until(t, "the worker has begun to join", func() bool { return len(s.subscriptions()) == 1 })
	if err := s.close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	select {
	case err := <-done:
		if !errors.Is(err, provider.ErrClosed) {
			t.Errorf("Subscribe of a provider that was closed: %v; want ErrClosed", err)
		}
	case <-time.After(testPatience):
		t.Errorf("Subscribe goes on after Close")
	}
}

// TestAWorkerThatStartsDuringAnOutageWaitsForItsEnd, which takes longer than any request
// may.
func TestAWorkerThatStartsDuringAnOutageWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	server := brokers.RequireKafka(t, brokers.KafkaOptions{})
	c := newCluster(t, server.Addr())
	c.cfg.Timeout = 500 * time.Millisecond
	s, _ := c.open()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Subscribe(t.Context(), options(1, "q"))
		done <- err
	}()
	until(t, "the worker notices", func() bool { return s.news.reason() != nil })
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Subscribe of a worker that started during an outage: %v", err)
	}
}
