package kafka

import (
	"context"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Receive returns what starts now: provider.Subscription. What a dead worker left comes
// first, then the lanes in their order.
func (s *subscription) Receive(ctx context.Context, lanes []string, max int) ([]provider.Delivery, error) {
	defer s.wait(nil, 0)
	for {
		if s.closing.Err() != nil {
			return nil, provider.ErrClosed
		}
		s.look(ctx, lanes)
		if ds := s.take(lanes, max); len(ds) > 0 {
			return ds, nil
		}
		if err := s.sleep(ctx, s.wait(lanes, max)); err != nil {
			return nil, err
		}
	}
}

// sleep returns when there may be something to receive.
func (s *subscription) sleep(ctx context.Context, due <-chan time.Time) error {
	select {
	case <-s.arrived:
	case <-due:
	case <-s.closing.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// look reads partitions of which nothing is here, if a lane that comes after theirs has
// something: only then is it known that nothing of them comes first.
func (s *subscription) look(ctx context.Context, lanes []string) {
	var unsure sync.WaitGroup
	for _, p := range s.ahead(lanes) {
		s.mu.Lock()
		from := p.tracker.Next()
		s.mu.Unlock()
		unsure.Go(func() {
			if got, err := s.store.fetch(ctx, p.at, from, 0); err == nil {
				p.arrive(got)
			}
		})
	}
	unsure.Wait()
}

// ahead returns the partitions of which nothing is here, of the lanes before the last
// that has something.
func (s *subscription) ahead(lanes []string) (unsure []*partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := 0
	for i, queue := range lanes {
		if l := s.lanes[queue]; l != nil && l.startable() > 0 {
			last = i
		}
	}
	for _, queue := range lanes[:last] {
		if l := s.lanes[queue]; l != nil && l.startable() == 0 {
			for _, p := range l.parts {
				if p.starts() {
					unsure = append(unsure, p)
				}
			}
		}
	}
	return unsure
}

func (l *lane) startable() (n int) {
	for _, p := range l.parts {
		if p.starts() {
			n += p.tracker.Startable()
		}
	}
	return n
}

// starts reports whether runs of the partition may be started.
func (p *partition) starts() bool {
	return p.tracker != nil && !p.limbo && !p.emptying && !p.leaving
}

// inOrder returns the partitions of some lanes in the order in which they are to be
// taken from: those that a dead worker had first. Those of one lane take turns.
func (s *subscription) inOrder(lanes []string) []*partition {
	var first, then []*partition
	for _, queue := range lanes {
		l := s.lanes[queue]
		if l == nil {
			continue
		}
		l.turn++
		for i := range l.parts {
			p := l.parts[(l.turn+i)%len(l.parts)]
			if !p.starts() {
				continue
			}
			if offset, ok := p.tracker.Foremost(); ok && offset < p.left {
				first = append(first, p)
			} else if ok || p.tracker.Later() > 0 {
				then = append(then, p)
			}
		}
	}
	return append(first, then...)
}

// take starts what may start.
func (s *subscription) take(lanes []string, max int) (ds []provider.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := millis(time.Now())
	for _, p := range s.inOrder(lanes) {
		for len(ds) < max {
			run, ok := p.tracker.Start(now)
			if !ok {
				break
			}
			p.pace.starts++
			p.wake()
			if d := p.deliveryLocked(run); d != nil {
				ds = append(ds, d)
			}
		}
	}
	return ds
}

// wait asks for commits that let up to max records start, and returns what tells that
// the time of another has come.
func (s *subscription) wait(lanes []string, max int) <-chan time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		p.wanted = 0
	}
	s.wants = max > 0
	due := int64(0)
	for _, p := range s.inOrder(lanes) {
		p.wanted = min(max, p.tracker.Startable())
		max -= p.wanted
		if at, ok := p.tracker.Wake(); ok && (due == 0 || at < due) {
			due = at
		}
	}
	if s.wants {
		s.commit.kick()
	}
	if due == 0 {
		return nil
	}
	return time.After(time.Until(time.UnixMilli(due)) + time.Millisecond)
}
