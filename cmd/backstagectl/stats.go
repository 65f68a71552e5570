package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/backstage-go/backstage/codegen"
	"github.com/backstage-go/backstage/internal/command"
	"github.com/backstage-go/backstage/runtime/provider"
)

func statsCommand(w world) *command.Command {
	return &command.Command{
		Name:     "stats",
		Operands: "[QUEUE…]",
		Summary:  "show how queues stand",
		About: `Stats prints the numbers of the named queues, or of all:

  DEPTH         jobs that wait for a worker: ready, or behind another of their
                ordering key
  OLDEST READY  how long the oldest that is ready to start has been so; it grows
                when workers are too few, too slow, or gone
  IN FLIGHT     runs that are not settled yet
  HELD          jobs that wait for their time: delayed, or for a retry
  DEAD          dead letters (backstagectl dead list)
  OLDEST DEAD   how long the oldest of them has been dead

An age is - where there is nothing to be old. A number that the broker cannot tell
is unknown, never 0. With -watch the table is drawn again and again until Ctrl-C,
also while the broker cannot be reached.`,
		Examples: `backstagectl -url embedded:/var/lib/shop/jobs.db stats
backstagectl stats orders mail -watch        # every 2 seconds
backstagectl stats -watch=10s -o json >> queues.jsonl
backstagectl stats -o json | jq -r 'select(.oldest_ready_seconds > 60) | .queue'`,
		Codes: `0  the numbers are printed; -watch was ended by a signal
1  the broker could not be asked, or there is no such queue
2  wrong usage`,
		Flags: func(set *flag.FlagSet) command.Action {
			s := &statistics{broker: w.brokerFlags(set), format: command.FormatFlag(set, "text", "json")}
			set.Var(&s.watch, "watch", "print again and again; -watch=10s says how often (2s unless it does)")
			return s.run
		},
	}
}

// statistics is one run of the command.
type statistics struct {
	broker *broker
	format *string
	watch  interval
}

func (s *statistics) run(ctx context.Context, c *command.Console, queues []string) error {
	return s.broker.use(ctx, func(p *provider.Provider) error {
		stats, err := statsOf(p)
		if err != nil {
			return err
		}
		if err := s.check(ctx, stats, queues); err != nil {
			return err
		}
		if s.watch > 0 {
			return s.again(ctx, c, stats, queues)
		}
		rows, err := s.read(ctx, stats, queues)
		if err != nil {
			return err
		}
		return s.print(c, rows)
	})
}

// check refuses queues that there are not, whose zeros would look like those of a
// queue that is well.
func (s *statistics) check(ctx context.Context, stats provider.Stats, queues []string) error {
	if len(queues) == 0 {
		return nil
	}
	names, err := s.queues(ctx, stats)
	if err != nil {
		return err
	}
	for _, queue := range queues {
		if slices.Contains(names, queue) {
			continue
		}
		if near := codegen.Nearest(queue, names); near != "" {
			return fmt.Errorf("there is no queue %q; did you mean %q?", queue, near)
		}
		return fmt.Errorf("there is no queue %q", queue)
	}
	return nil
}

func (s *statistics) queues(ctx context.Context, stats provider.Stats) ([]string, error) {
	return within(ctx, s.broker, stats.Queues)
}

// queueRow is the numbers of one queue in JSON. Unknown ones are null.
type queueRow struct {
	At                 time.Time `json:"at"`
	Queue              string    `json:"queue"`
	Depth              *int64    `json:"depth"`
	OldestReadySeconds *float64  `json:"oldest_ready_seconds"`
	InFlight           *int64    `json:"in_flight"`
	Held               *int64    `json:"held"`
	Dead               *int64    `json:"dead"`
	OldestDeadSeconds  *float64  `json:"oldest_dead_seconds"`

	numbers provider.QueueStats
}

// read asks for the numbers of queues, all if none are named.
func (s *statistics) read(ctx context.Context, stats provider.Stats, queues []string) ([]queueRow, error) {
	if len(queues) == 0 {
		var err error
		if queues, err = s.queues(ctx, stats); err != nil {
			return nil, err
		}
	}
	at := s.broker.now().UTC()
	var rows []queueRow
	for _, queue := range queues {
		numbers, err := within(ctx, s.broker, func(ctx context.Context) (provider.QueueStats, error) { return stats.Queue(ctx, queue) })
		if err != nil {
			return nil, fmt.Errorf("queue %s: %w", queue, err)
		}
		rows = append(rows, rowOf(at, queue, numbers))
	}
	return rows, nil
}

func rowOf(at time.Time, queue string, numbers provider.QueueStats) queueRow {
	return queueRow{
		At: at, Queue: queue, numbers: numbers,
		Depth: number(numbers.Depth), OldestReadySeconds: seconds(numbers.OldestReady),
		InFlight: number(numbers.InFlight), Held: number(numbers.Held),
		Dead: number(numbers.Dead), OldestDeadSeconds: seconds(numbers.OldestDead),
	}
}

func number(m provider.Measure[int64]) *int64 {
	if n, known := m.Get(); known {
		return &n
	}
	return nil
}

func seconds(m provider.Measure[time.Duration]) *float64 {
	if d, known := m.Get(); known {
		s := d.Seconds()
		return &s
	}
	return nil
}

func (s *statistics) print(c *command.Console, rows []queueRow) error {
	if *s.format == "text" {
		return s.table(c.Out, rows)
	}
	for _, row := range rows {
		if err := c.JSONLine(row); err != nil {
			return err
		}
	}
	return nil
}

func (s *statistics) table(w io.Writer, rows []queueRow) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "there are no queues yet")
		return err
	}
	t := table{right: []int{1, 2, 3, 4, 5, 6}}
	t.row("QUEUE", "DEPTH", "OLDEST READY", "IN FLIGHT", "HELD", "DEAD", "OLDEST DEAD")
	for _, row := range rows {
		n := row.numbers
		t.row(clean(row.Queue), n.Depth.String(), ageOf(n.OldestReady), n.InFlight.String(), n.Held.String(), n.Dead.String(), ageOf(n.OldestDead))
	}
	return t.write(w, "")
}

func ageOf(m provider.Measure[time.Duration]) string {
	d, known := m.Get()
	switch {
	case !known:
		return m.String()
	case d == 0:
		return "-"
	}
	return age(d)
}

// interval is the flag -watch, which needs no value.
type interval time.Duration

// String returns the interval.
func (i *interval) String() string { return time.Duration(*i).String() }

// IsBoolFlag lets the flag stand alone.
func (i *interval) IsBoolFlag() bool { return true }

// Set reads the interval: a duration, or a number of seconds; "true" is the flag alone.
func (i *interval) Set(s string) error {
	switch s {
	case "true":
		*i = interval(2 * time.Second)
		return nil
	case "false":
		*i = 0
		return nil
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		s += "s"
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return errors.New("write how often, such as -watch=5s")
	}
	*i = interval(d)
	return nil
}
