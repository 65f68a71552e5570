package kafka

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// TestABrokerThatIsKilledLosesNothing publishes while the broker is killed and started
// again, and looks for every job that was said to be stored.
func TestABrokerThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it kills a broker")
	}
	server := brokers.RequireKafka(t, brokers.KafkaOptions{})
	c := newCluster(t, server.Addr())
	s, log := c.open()
	publish(t, s, someJobs(30, "q")...)
	var group sync.WaitGroup
	var mu sync.Mutex
	stored, unknown := make(map[string]bool), 0
	ctx, stop := context.WithCancel(t.Context())
	for producer := range 8 {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				j := aJob(fmt.Sprintf("%d-%d", producer, i), "q")
				within, cancel := context.WithTimeout(t.Context(), testPatience)
				r := s.Publish(within, []provider.Job{j}, provider.PublishOptions{})
				cancel()
				mu.Lock()
				switch r[0].Outcome {
				case provider.OutcomeStored:
					stored[j.ID] = true
				case provider.OutcomeUnknown:
					unknown++
				default:
					t.Errorf("%s: %s, %v", j.ID, r[0].Outcome, r[0].Err)
				}
				mu.Unlock()
			}
		})
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(stored)
	}
	for range often(1, 10) {
		was := count()
		until(t, "jobs are stored", func() bool { return count() > was+100 })
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	was := count()
	began := time.Now()
	until(t, "jobs are stored after the last start", func() bool { return count() > was+100 })
	t.Logf("jobs were stored %v after the last start; %d in all, %d unknown", time.Since(began), count(), unknown)
	stop()
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
	twice := 0
	for id := range stored {
		if seen[id] == 0 {
			t.Errorf("job %s was stored, and is not there", id)
		}
		if seen[id] > 1 {
			twice++
		}
	}
	if twice > 0 {
		t.Errorf("%d jobs that were stored are there twice", twice)
	}
	if !log.has(provider.Disconnected, "") || !log.has(provider.Reconnected, "") {
		t.Errorf("events: %+v", log.all)
	}
}

func TestHealthSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	proxy := brokers.StartProxy(t, c.server)
	c.through(proxy.Addr())
	s, _ := c.open()
	if err := s.provider.Health(t.Context()); err != nil {
		t.Errorf("Health: %v", err)
	}
	proxy.Blackhole()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := s.provider.Health(ctx); err == nil || !strings.Contains(err.Error(), "no broker answers") {
		t.Errorf("Health without a network: %v", err)
	}
	proxy.Resume()
	until(t, "Health is well again", func() bool { return s.provider.Health(t.Context()) == nil })
}

// TestNothingGoesOnAfterClose runs alone, because it counts goroutines.
func TestNothingGoesOnAfterClose(t *testing.T) {
	c := sharedCluster(t)
	before := runtime.NumGoroutine()
	for range 3 {
		s, err := open(t.Context(), c.cfg, c.in)
		if err != nil {
			t.Fatal(err)
		}
		publish(t, s, someJobs(30, "q")...)
		bury(t, s, aJob("dead", "q"))
		numbersOf(t, s, "q")
		for range 2 {
			if err := s.provider.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
	}
	until(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}

func TestWhatDidNotLeaveIsNotInDoubt(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	s, _ := c.open()
	publish(t, s, aJob("before", "q"))
	s.wires.cut() // what is idle looks well until it is used
	publish(t, s, aJob("after", "q"))
	if n := len(inTopic(t, s, "q")[0]); n != 2 {
		t.Errorf("%d jobs are in the topic, want 2", n)
	}
}
