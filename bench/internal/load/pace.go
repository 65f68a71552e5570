package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/bench/internal/measure"
)

// before is how many jobs run before the ones whose pace counts: connections are opened
// and queues are made by them.
const before = 20

// Pace enqueues jobs one by one, rate a second, while a worker with a number of slots has
// nothing else to do, and returns how long each took from the call that enqueued it to
// the start of its handler. A job that was lost or ran twice is an error.
func Pace(ctx context.Context, s Side, slots, jobs, rate int) (waits measure.Durations, err error) {
	count := before + jobs
	tally := NewTally(count)
	called, started := make([]time.Time, count), make([]time.Time, count)
	stop, err := s.Start(slots, func(n int) {
		started[n] = time.Now()
		tally.Ran(n)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	for n := range count {
		<-ticker.C
		called[n] = time.Now()
		if err := s.Enqueue(ctx, n); err != nil {
			return nil, err
		}
	}
	if err := tally.Wait(ctx); err != nil {
		return nil, err
	}
	if lost, twice := tally.Lost(), tally.Twice(); lost+twice > 0 {
		return nil, fmt.Errorf("%d jobs lost, %d run twice", lost, twice)
	}
	for n := before; n < count; n++ {
		waits = append(waits, started[n].Sub(called[n]))
	}
	return waits, nil
}
