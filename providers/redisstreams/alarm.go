package redisstreams

import (
	"context"
	"sync"
	"time"
)

// alarms wake the promoters of this process for what is held here, to the
// millisecond. What other processes hold they find by looking.
type alarms struct {
	mu   sync.Mutex
	list map[*alarm]bool
}

// alarm is that of one promoter.
type alarm struct {
	until time.Time // when it wakes by itself; zero while it works
	wake  chan struct{}
}

func (as *alarms) join() *alarm {
	a := &alarm{wake: make(chan struct{}, 1)}
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.list == nil {
		as.list = make(map[*alarm]bool)
	}
	as.list[a] = true
	return a
}

func (as *alarms) quit(a *alarm) {
	as.mu.Lock()
	defer as.mu.Unlock()
	delete(as.list, a)
}

// tell wakes those that would sleep beyond a time. (A promoter of another scope may
// be woken for nothing.)
func (as *alarms) tell(due time.Time) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for a := range as.list {
		if a.until.IsZero() || due.Before(a.until) {
			select {
			case a.wake <- struct{}{}:
			default:
			}
		}
	}
}

// rest sleeps until a time, or until it is woken because something is held that is
// due before.
func (as *alarms) rest(ctx context.Context, a *alarm, d time.Duration) {
	if d <= 0 {
		return
	}
	as.set(a, time.Now().Add(d))
	defer as.set(a, time.Time{})
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-a.wake:
	case <-timer.C:
	}
}

func (as *alarms) set(a *alarm, until time.Time) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a.until = until
}
