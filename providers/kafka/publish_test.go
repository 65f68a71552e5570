package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

func TestWhatIsStoredIsInTheTopic(t *testing.T) {
	t.Parallel()
	s, _ := sharedCluster(t).open()
	const callers, each = 20, 50
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := range each {
				publish(t, s, aJob(fmt.Sprintf("%d-%d", caller, i), "q"))
			}
		})
	}
	group.Wait()
	seen := make(map[string]int)
	for _, records := range inTopic(t, s, "q") {
		for _, r := range records {
			j, err := provider.Unmarshal(r.value)
			if err != nil {
				t.Fatal(err)
			}
			seen[j.ID]++
		}
	}
	if len(seen) != callers*each {
		t.Errorf("%d jobs are in the topic, want %d", len(seen), callers*each)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("job %s is there %d times", id, n)
		}
	}
}

func TestTheJobsOfOneCallAreSpread(t *testing.T) {
	t.Parallel()
	s, _ := sharedCluster(t).open()
	for i := range 3 { // partitions that are new do not take anything yet
		j := aJob("first", "q")
		j.OrderingKey = []string{"a", "c", "g"}[i]
		publish(t, s, j)
	}
	before := inTopic(t, s, "q")
	publish(t, s, someJobs(20, "q")...)
	for i, records := range inTopic(t, s, "q") {
		if n := len(records) - len(before[i]); n < 6 || n > 7 {
			t.Errorf("partition %d has %d of 20 jobs, want a third", i, n)
		}
	}
}

func TestAKeyHasOnePartitionAndKeepsItsOrder(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	var group sync.WaitGroup
	const keys, each = 8, 40
	for key := range keys {
		s, _ := c.open() // as many processes
		group.Go(func() {
			for i := 0; i < each; i += 4 {
				var jobs []provider.Job
				for n := range 4 {
					j := aJob(fmt.Sprint(i+n), "q")
					j.OrderingKey = fmt.Sprintf("key %d", key)
					jobs = append(jobs, j)
				}
				publish(t, s, jobs...)
			}
		})
	}
	group.Wait()
	s, _ := c.open()
	next := make(map[string]int)
	home := make(map[string]int)
	for i, records := range inTopic(t, s, "q") {
		for _, r := range records {
			key := string(r.key)
			if was, ok := home[key]; ok && was != i {
				t.Errorf("%s is in partitions %d and %d", key, was, i)
			}
			home[key] = i
			if j, _ := provider.Unmarshal(r.value); j.ID != fmt.Sprint(next[key]) || j.OrderingKey != key {
				t.Fatalf("%s: job %s of %s comes when %d is due", key, j.ID, j.OrderingKey, next[key])
			}
			next[key]++
		}
	}
	for key := range keys {
		if n := next[fmt.Sprintf("key %d", key)]; n != each {
			t.Errorf("key %d has %d jobs, want %d", key, n, each)
		}
	}
}

func TestTheHashOfKeysNeverChanges(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{"": 261, "a": 220, "order/1009": 118, "köln": 637} {
		if got := partitionOf([]byte(key), 1000); got != want {
			t.Errorf("partitionOf(%q, 1000) = %d, want %d", key, got, want)
		}
	}
}

func TestWhatCannotBeStoredIsRefused(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.MaxRecord = 100_000
	s, _ := c.open()
	large, delayed, nameless, long := aJob("large", "q"), aJob("delayed", "q"), aJob("", "q"), aJob("long", strings.Repeat("_", 100))
	large.Payload = make([]byte, 100_000)
	delayed.Delay = time.Second
	for says, j := range map[string]provider.Job{
		"MaxRecord is 100000": large, "lend it Delays": delayed, "no id": nameless, "too long": long,
	} {
		stored := s.Publish(t.Context(), []provider.Job{j, aJob("good", "q")}, provider.PublishOptions{})
		if stored[0].Outcome != provider.OutcomeRefused || stored[0].Err == nil || !strings.Contains(stored[0].Err.Error(), says) {
			t.Errorf("%s: %s, %v; want refused, because %s", j.ID, stored[0].Outcome, stored[0].Err, says)
		}
		if stored[1].Outcome != provider.OutcomeStored {
			t.Errorf("the good one beside %s: %s, %v", j.ID, stored[1].Outcome, stored[1].Err)
		}
	}
}

func TestARecordThatTheTopicDoesNotTakeIsRefusedAlone(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	s, _ := c.open()
	topic := s.jobsOf("q")
	for i, e := range topic.settings.ConfigEntries {
		if e.ConfigName == "max.message.bytes" {
			topic.settings.ConfigEntries[i].ConfigValue = "20000"
		}
	}
	if _, err := s.topics.ready(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	jobs := someJobs(40, "q")
	for i := range jobs {
		jobs[i].Payload = make([]byte, 1000)
	}
	jobs[17].Payload = make([]byte, 30_000)
	for i, stored := range s.Publish(t.Context(), jobs, provider.PublishOptions{}) {
		if i == 17 {
			if stored.Outcome != provider.OutcomeRefused || !strings.Contains(fmt.Sprint(stored.Err), "max.message.bytes") {
				t.Errorf("the large one: %s, %v; want refused, naming max.message.bytes", stored.Outcome, stored.Err)
			}
		} else if stored.Outcome != provider.OutcomeStored {
			t.Errorf("job %d: %s, %v", i, stored.Outcome, stored.Err)
		}
	}
	if n := len(inTopic(t, s, "q")[0]); n != 39 {
		t.Errorf("%d jobs are in the topic, want 39", n)
	}
}

func TestALargeRecordIsStored(t *testing.T) {
	t.Parallel()
	s, _ := sharedCluster(t).open()
	j := aJob("large", "q")
	j.Payload = make([]byte, 2<<20-1000)
	publish(t, s, j, aJob("small", "q"))
}

func TestATopicThatWasDeletedIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	s, _ := c.open()
	other, _ := c.open() // which knows sooner
	publish(t, s, someJobs(10, "q")...)
	until(t, "the topic is gone", func() bool {
		c.deleteTopics()
		there, err := other.topics.there(t.Context(), s.names.jobs("q"))
		return err == nil && !there
	})
	publish(t, s, someJobs(10, "q")...)
	n := 0
	for _, records := range inTopic(t, s, "q") {
		n += len(records)
	}
	if n != 10 {
		t.Errorf("%d jobs are in the new topic, want 10", n)
	}
}

func TestAnAddedPartitionIsUsedAndAnnounced(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	s, log := c.open()
	publish(t, s, aJob("first", "q"))
	addPartitions(t, s, "q", 3)
	until(t, "an event tells of the partitions", func() bool {
		publish(t, s, someJobs(30, "q")...)
		return log.has(provider.Degraded, "has 3 partitions now, and had 1")
	})
	publish(t, s, someJobs(30, "q")...)
	for i, records := range inTopic(t, s, "q") {
		if len(records) == 0 {
			t.Errorf("partition %d has no jobs", i)
		}
	}
}

func TestWithoutANetworkWhatWasNotSentIsRefused(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	proxy := brokers.StartProxy(t, c.server)
	c.through(proxy.Addr())
	s, log := c.open()
	publish(t, s, aJob("before", "q"))
	proxy.Close()
	refused := 0
	for i := range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		stored := s.Publish(ctx, []provider.Job{aJob(fmt.Sprint(i), "q")}, provider.PublishOptions{})
		cancel()
		if stored[0].Outcome == provider.OutcomeRefused {
			refused++
		} else if stored[0].Outcome != provider.OutcomeUnknown || i > 0 {
			t.Errorf("job %d: %s, %v; want refused, or unknown for the first", i, stored[0].Outcome, stored[0].Err)
		}
	}
	if refused < 2 {
		t.Errorf("%d of 3 jobs were refused", refused)
	}
	until(t, "the outage is told", func() bool { return log.has(provider.Disconnected, "cannot be reached") })
}

func TestAnAnswerThatDoesNotComeIsUnknown(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	proxy := brokers.StartProxy(t, c.server)
	c.through(proxy.Addr())
	s, _ := c.open()
	publish(t, s, aJob("before", "q"))
	proxy.Blackhole()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	stored := s.Publish(ctx, []provider.Job{aJob("lost", "q")}, provider.PublishOptions{})
	if stored[0].Outcome != provider.OutcomeUnknown || !errors.Is(stored[0].Err, context.DeadlineExceeded) {
		t.Errorf("%s, %v; want unknown", stored[0].Outcome, stored[0].Err)
	}
	proxy.Resume()
	publish(t, s, aJob("after", "q"))
}

func TestClosingWaitsForWhatIsUnderWayAndRefusesWhatComesLater(t *testing.T) {
	t.Parallel()
	s, _ := sharedCluster(t).open()
	var group sync.WaitGroup
	outcomes := make(chan provider.Stored, 1000)
	for i := range 100 {
		group.Go(func() {
			for _, stored := range s.Publish(t.Context(), someJobs(10, fmt.Sprint("q", i%3)), provider.PublishOptions{}) {
				outcomes <- stored
			}
		})
	}
	if err := s.provider.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	group.Wait()
	close(outcomes)
	for stored := range outcomes {
		if stored.Outcome != provider.OutcomeStored && !(stored.Outcome == provider.OutcomeRefused && errors.Is(stored.Err, provider.ErrClosed)) {
			t.Errorf("%s: %s, %v; want stored, or refused as closed", stored.ID, stored.Outcome, stored.Err)
		}
	}
	if stored := s.Publish(t.Context(), someJobs(1, "q"), provider.PublishOptions{}); !errors.Is(stored[0].Err, provider.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", stored[0].Err)
	}
}
