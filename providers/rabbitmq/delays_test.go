package rabbitmq

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// late holds jobs and returns how late each came.
func late(t *testing.T, s *store, delays []time.Duration) []time.Duration {
	t.Helper()
	const slots = 200
	sub := subscribe(t, s, options(slots, "work"))
	// The ways are made before, as those of a program that has run for a while.
	for _, d := range delays {
		if err := s.topology.way(t.Context(), digits(d), "work"); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	due := make(map[string]time.Time)
	var group sync.WaitGroup
	const each = 100
	for from := 0; from < len(delays); from += each {
		group.Go(func() {
			var jobs []provider.Job
			for i, d := range delays[from:min(from+each, len(delays))] {
				j := aJob(fmt.Sprint(from+i), "work")
				j.Delay = d
				jobs = append(jobs, j)
			}
			mu.Lock()
			for _, j := range jobs {
				due[j.ID] = time.Now().Add(j.Delay)
			}
			mu.Unlock()
			publish(t, s, jobs...)
		})
	}
	var all []time.Duration
	for len(all) < len(delays) {
		for _, d := range receive(t, sub, 1) {
			mu.Lock()
			at, known := due[d.job.ID]
			delete(due, d.job.ID)
			mu.Unlock()
			if known { // a copy that the broker made twice is not
				all = append(all, time.Since(at))
			}
			group.Go(func() { ack(t, d) })
		}
	}
	group.Wait()
	if err := sub.Close(t.Context()); err != nil {
		t.Error(err)
	}
	slices.Sort(all)
	return all
}

func quantile(all []time.Duration, q float64) time.Duration {
	return all[min(len(all)-1, int(q*float64(len(all))))].Round(time.Millisecond)
}

func TestDelaysAreKept(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	s, _ := b.open()
	delays := []time.Duration{time.Second, 1100 * time.Millisecond, 10 * time.Second}
	if soaks() {
		delays = append(delays, 90*time.Second)
	}
	all := late(t, s, delays)
	t.Logf("late by %v", all)
	if all[0] < 0 {
		t.Errorf("a job came %v early", -all[0])
	}
}

// Many jobs with all kinds of delays come, none early. How late they are depends on what
// else the machine does, and is told.
func TestManyMixedDelays(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	b.in.levels = 2
	s, _ := b.open()
	for _, n := range []int{often(300, 2000), often(0, 20_000)} {
		if n == 0 {
			continue
		}
		delays := make([]time.Duration, n)
		for i := range delays {
			delays[i] = time.Duration(rand.IntN(5000)) * time.Millisecond
		}
		all := late(t, s, delays)
		t.Logf("%d mixed delays up to 5s: late by p50 %v, p99 %v, most %v", n, quantile(all, 0.5), quantile(all, 0.99), all[n-1].Round(time.Millisecond))
		if all[0] < -ladderGrain {
			t.Errorf("a job came %v early", -all[0])
		}
	}
}
