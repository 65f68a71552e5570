package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/backstage-go/backstage/runtime/provider"
)

// report prints what became of all orders so far.
func report(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("shop report", flag.ExitOnError)
	at := placeFlags(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	s, err := at.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.report(ctx, os.Stdout)
}

// report prints the table, and fails if something is missing or was done twice.
func (s *shop) report(ctx context.Context, out io.Writer) error {
	n, missing, err := s.look(ctx)
	if err != nil {
		return err
	}
	own, others, err := s.deadLetters(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 8, 0, 2, ' ', tabwriter.AlignRight)
	row := func(n any, text string) { fmt.Fprintf(w, "%v\t  %s\n", n, text) }
	row(n.accepted, "orders accepted")
	row(n.charged, "= charged, each once")
	row(n.refused, "+ refused by the bank, each once")
	row(n.open(), "+ not finished yet")
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	row(n.receipts, "receipts mailed: the next step of every charge")
	row(n.parcels, "parcels booked: the other one, two seconds later")
	row(own, "dead letters: the refused ones, until they are replayed or discarded")
	row(others, "dead letters of other jobs")
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	row(n.retried, "runs after a failed one")
	row(n.restarted, "second runs: a worker or the broker died, or an answer was lost")
	row(n.recognised, "runs that found their effect done, by the job's id")
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case n.twice > 0:
		return fmt.Errorf("%d orders were charged, mailed or shipped twice", n.twice)
	case missing:
		return errors.New("orders are not finished, and the broker has nothing left to run")
	}
	return nil
}

// look counts what is done. Something is missing if it was accepted and is not
// done, and the broker has nothing left to run.
func (s *shop) look(ctx context.Context) (n numbers, missing bool, err error) {
	before, err := s.ledger.numbers(ctx)
	if err != nil {
		return n, false, err
	}
	quiet, err := s.quiet(ctx)
	if err != nil {
		return n, false, err
	}
	n, err = s.ledger.numbers(ctx)
	return n, quiet && !n.finished(before), err
}

// quiet reports whether the broker is known to have no job that is ready, running
// or waiting for its time. It looks twice, because a job that ends while the first
// look goes from queue to queue may leave another in one that was looked at before.
func (s *shop) quiet(ctx context.Context) (bool, error) {
	if s.provider.Stats == nil {
		return false, nil
	}
	for range 2 {
		queues, err := s.provider.Stats.Queues(ctx)
		if err != nil {
			return false, err
		}
		for _, queue := range queues {
			stats, err := s.provider.Stats.Queue(ctx, queue)
			if err != nil {
				return false, err
			}
			for _, measure := range []provider.Measure[int64]{stats.Depth, stats.InFlight, stats.Held} {
				if n, known := measure.Get(); n > 0 || !known {
					return false, nil
				}
			}
		}
	}
	return true, nil
}

// deadLetters counts the dead letters of accepted orders, and all others: unknown
// where the provider keeps none.
func (s *shop) deadLetters(ctx context.Context) (own, others provider.Measure[int], err error) {
	if s.provider.Dead == nil {
		return own, others, nil
	}
	count := make(map[bool]int)
	for page := ""; ; {
		letters, next, err := s.provider.Dead.List(ctx, provider.DeadFilter{}, page)
		if err != nil {
			return own, others, err
		}
		for _, letter := range letters {
			accepted, err := s.ledger.has(ctx, letter.Job.ID)
			if err != nil {
				return own, others, err
			}
			count[accepted]++
		}
		if page = next; page == "" {
			return provider.Measured(count[true]), provider.Measured(count[false]), nil
		}
	}
}
