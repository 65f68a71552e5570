package backstage

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// receive takes deliveries while there are free slots. It returns nil when ctx
// has ended and an error when receiving failed for good.
func (s *shift) receive(ctx context.Context) error {
	for {
		lanes, n := s.admit(ctx)
		if ctx.Err() != nil {
			return nil
		}
		deliveries, err := s.sub.Receive(ctx, lanes, n)
		for _, e := range s.arrive(deliveries) {
			if ctx.Err() != nil {
				s.giveBack(e)
				continue
			}
			s.take(e)
		}
		if err != nil && ctx.Err() == nil {
			err = s.broker.named(err)
			s.trouble("receive", err)
			return fmt.Errorf("receive: %w", err)
		}
	}
}

// admit waits until a slot and a place are free, and returns the lanes to take
// from and the most to take. Where slots are fixed the provider keeps each lane to
// its own: a lane that is left out would not be asked for again when it has a free
// one, while the call waits for the others.
func (s *shift) admit(ctx context.Context) (lanes []string, n int) {
	for {
		runtime.Gosched() // handlers that have returned give back their slots first: larger reads
		if lanes, n = s.free(); n > 0 {
			return lanes, n
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return nil, 0
		}
	}
}

func (s *shift) free() (lanes []string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lanes = s.lanes.order()
	return lanes, min(s.cfg.Concurrency-s.busy, s.maxUnsettled()-len(s.active))
}

// take starts the life of a delivery with this worker.
func (s *shift) take(e *execution) {
	select {
	case s.work <- e:
	default:
		s.pool.Go(func() { s.loop(e) })
	}
}

// loop is a goroutine of the pool. Goroutines are reused because the growth of
// their stacks is a good part of a short job's cost.
func (s *shift) loop(e *execution) {
	for {
		s.live(e)
		select {
		case e = <-s.work:
		case <-s.quit:
			return
		}
	}
}

// giveBack releases a delivery that arrived while stopping.
func (s *shift) giveBack(e *execution) {
	s.pool.Go(func() { s.finish(e, ending{how: stopped}) })
}

// arrive notes deliveries that are to be settled, and gives each a slot. All are
// noted before the first starts, so that a suspect knows of the others.
func (s *shift) arrive(deliveries []provider.Delivery) []*execution {
	arrived := make([]*execution, len(deliveries))
	now := time.Now()
	for i, d := range deliveries {
		arrived[i] = s.newExecution(d, now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range arrived {
		e.index = len(s.active)
		s.active = append(s.active, e)
		s.busy++
		s.watch(e)
		s.countSuspect(e)
	}
	return arrived
}

// leaveSlot gives back the slot of a delivery whose handler has returned. Where
// slots are fixed, settling occupies it too.
func (s *shift) leaveSlot(e *execution) {
	s.mu.Lock()
	s.freeSlot(e)
	s.mu.Unlock()
	s.signal()
}

func (s *shift) freeSlot(e *execution) {
	if e.inSlot {
		e.inSlot = false
		s.busy--
	}
}

// leave ends the life of a delivery with this worker.
func (s *shift) leave(e *execution) {
	s.mu.Lock()
	s.freeSlot(e)
	last := len(s.active) - 1
	s.active[e.index] = s.active[last]
	s.active[e.index].index = e.index
	s.active = s.active[:last]
	if s.running[e.key] == e {
		delete(s.running, e.key)
	}
	if s.suspect == e { // it did not run
		s.suspect = nil
	}
	if e.stuck {
		s.stuck--
	}
	s.unwatch(e)
	s.uncountSuspect(e)
	ended := e.ended
	s.mu.Unlock()
	if ended != nil {
		close(ended)
	}
	s.signal()
}

func (s *shift) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// maxUnsettled bounds the deliveries that run or settle: a slot is free again
// when its handler returns, but a broker that does not settle must not make the
// worker take ever more.
func (s *shift) maxUnsettled() int {
	if s.lanes.fixed {
		return s.cfg.Concurrency
	}
	return 2*s.cfg.Concurrency + 16
}
