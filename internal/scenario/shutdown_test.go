//go:build unix

package scenario

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestSIGTERMUnderLoadLosesNothingAndCountsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		accepted := s.produce(func() {
			for range long(3, 50) {
				before := s.ledger.size(t)
				w := start(t, s.setup("q", 16))
				s.until(time.Minute, func() (bool, string) {
					return len(s.ledger.readFrom(t, before, "start")) > 100, "the worker does not work"
				})
				w.signal(syscall.SIGTERM)
				if err := w.wait(); err != nil {
					t.Fatalf("worker: %v; want all settled", err)
				}
			}
		})
		start(t, s.setup("q", 16))
		s.untilQuiet(5 * time.Minute)

		ran := make(map[string]int)
		for _, e := range s.ledger.read(t, "start") {
			ran[e.Job]++
			if e.Attempt != 1 || e.Crashes != 0 {
				t.Errorf("job %s started with attempt %d and %d crashes: a shutdown was counted against it", e.Job, e.Attempt, e.Crashes)
			}
		}
		for id := range accepted {
			if ran[id] == 0 {
				t.Errorf("job %s was accepted and never ran", id)
			}
		}
		s.checkNoneIsDead()
	})
}

// produce enqueues jobs while something happens, and returns the ids of those that
// were accepted.
func (s *stage) produce(meanwhile func()) map[string]bool {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	var producing sync.WaitGroup
	defer producing.Wait()
	defer stop()
	var mu sync.Mutex
	accepted := make(map[string]bool)
	for p := range 4 {
		producing.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				j := job("q", fmt.Sprintf("p%d-%d sleep 15ms", p, i))
				if receipts, err := s.client.Enqueue(ctx, j); err == nil {
					mu.Lock()
					accepted[receipts[0].ID] = true
					mu.Unlock()
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	meanwhile()
	return accepted
}

func TestAHandlerMayStopItsOwnWorkerTwice(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.enqueue(job("q", "stops stop"))
		w := start(t, s.setup("q", 2))
		if err := w.wait(); err != nil {
			t.Errorf("worker: %v; want all settled", err)
		}
		s.checkEnds(1, 1, "stops")
		s.untilQuiet(time.Second)
	})
}
