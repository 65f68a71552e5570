package memory

import (
	"context"
	"sync"
	"time"
)

// sleeper is a call that waits for work. It belongs to one goroutine; the store's
// lock guards all but the waiting itself.
type sleeper struct {
	wake   chan struct{} // one token; sent only while asleep
	asleep bool
	until  time.Time // when it wakes by itself; zero: never
	timer  *time.Timer
}

func newSleeper() sleeper { return sleeper{wake: make(chan struct{}, 1)} }

// sleep gives up the lock until somebody rouses it, the time has come (zero: none),
// ctx ends or stop is closed.
func (s *sleeper) sleep(ctx context.Context, lock *sync.Mutex, until time.Time, stop <-chan struct{}) {
	select {
	case <-s.wake: // of an earlier sleep that ended for another reason
	default:
	}
	s.asleep, s.until = true, until
	alarm := s.alarm()
	lock.Unlock()
	select {
	case <-s.wake:
	case <-alarm:
	case <-ctx.Done():
	case <-stop:
	}
	lock.Lock()
	s.asleep = false
	if alarm != nil {
		s.timer.Stop()
	}
}

// alarm starts the one timer of this sleeper, if there is a time to wake at.
func (s *sleeper) alarm() <-chan time.Time {
	switch {
	case s.until.IsZero():
		return nil
	case s.timer == nil:
		s.timer = time.NewTimer(time.Until(s.until))
	default:
		s.timer.Reset(time.Until(s.until))
	}
	return s.timer.C
}

// rouse wakes it, if it is asleep.
func (s *sleeper) rouse() {
	if s.asleep {
		s.asleep = false
		s.wake <- struct{}{}
	}
}

// rouseFor wakes it if it would sleep beyond a time that matters now.
func (s *sleeper) rouseFor(at time.Time) {
	if s.asleep && (s.until.IsZero() || at.Before(s.until)) {
		s.rouse()
	}
}

// sooner returns the earlier of two times, of which zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
