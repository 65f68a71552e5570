package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/redis/internal/side"
)

// warmup is how many jobs run before the ones that count: connections are opened and
// scripts are loaded by them.
const warmup = 20

// pace measures one side, on an empty server.
func (p plan) pace(ctx context.Context, name string, open func() (side.Side, error)) (err error) {
	if err := p.server.Clear(ctx); err != nil {
		return err
	}
	s, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	count := warmup + p.jobs
	tally := side.NewTally(count)
	called, started := make([]time.Time, count), make([]time.Time, count)
	stop, err := s.Start(p.slots, func(n int) {
		started[n] = time.Now()
		tally.Ran(n)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	ticker := time.NewTicker(time.Second / time.Duration(p.rate))
	defer ticker.Stop()
	for n := range count {
		<-ticker.C
		called[n] = time.Now()
		if err := s.Enqueue(ctx, n); err != nil {
			return err
		}
	}
	if err := tally.Wait(ctx); err != nil {
		return err
	}
	if lost, twice := tally.Lost(), tally.Twice(); lost+twice > 0 {
		return fmt.Errorf("%d jobs lost, %d run twice", lost, twice)
	}
	var waits measure.Durations
	for n := warmup; n < count; n++ {
		waits = append(waits, started[n].Sub(called[n]))
	}
	fmt.Fprintf(p.out, "%s: %s\n", name, waits)
	return nil
}
