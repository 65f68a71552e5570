// Package contest measures queues on one server beside each other. Each has runs of its
// own, on an empty queue; they take turns, and who begins takes turns too. What counts
// is the ratio of rates within a round, and the median over the rounds.
package contest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/backstage-go/backstage/bench/internal/load"
)

// Contest is what is measured, and how.
type Contest struct {
	// Sides are the queues. The first is compared with each of the others.
	Sides []Side
	// Rounds is how often each side has its turn.
	Rounds int
	// Jobs is how many a run has.
	Jobs int
	// Producers is how many wait for their receipts at once.
	Producers int
	// Slots is how many jobs run at once.
	Slots int
	// Batch is how many jobs a call of mode batch has.
	Batch int
	// Out is where figures go.
	Out io.Writer
}

// Side is one of the queues.
type Side struct {
	// Name is what figures call it.
	Name string
	// Open opens it, empty.
	Open func(ctx context.Context) (load.Side, error)
}

// Flags makes command-line flags of the numbers, whose defaults are those that are set.
func (c *Contest) Flags(set *flag.FlagSet) {
	set.IntVar(&c.Rounds, "rounds", c.Rounds, "rounds")
	set.IntVar(&c.Jobs, "jobs", c.Jobs, "jobs a run")
	set.IntVar(&c.Producers, "producers", c.Producers, "producers, each waiting for its receipt")
	set.IntVar(&c.Slots, "slots", c.Slots, "jobs that run at once")
	set.IntVar(&c.Batch, "batch", c.Batch, "jobs a call of mode batch")
}

// Names returns the sides' names.
func (c *Contest) Names() []string {
	names := make([]string, len(c.Sides))
	for i, s := range c.Sides {
		names[i] = s.Name
	}
	return names
}

// Keep leaves out all sides but some, which are named with commas between.
func (c *Contest) Keep(names string) error {
	var kept []Side
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(c.Sides, func(s Side) bool { return s.Name == name })
		if i < 0 {
			return fmt.Errorf("-sides %s: use %s", name, strings.Join(c.Names(), ","))
		}
		kept = append(kept, c.Sides[i])
	}
	c.Sides = kept
	return nil
}

// Run measures the modes that are named with commas between, and returns their rounds.
func (c *Contest) Run(ctx context.Context, names string) (map[string][]Round, error) {
	chosen, err := modesOf(names)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]Round)
	for _, m := range chosen {
		if all[m.name], err = c.mode(ctx, m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return all, nil
}

func (c *Contest) mode(ctx context.Context, m mode) ([]Round, error) {
	fmt.Fprintf(c.Out, "\n%s: %s\n", m.name, m.about(c))
	var rounds []Round
	for i := range c.Rounds {
		one := make(Round)
		for k := range c.Sides {
			s := c.Sides[(i+k)%len(c.Sides)]
			f, err := c.measure(ctx, m, s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.Name, err)
			}
			one[s.Name] = f
		}
		fmt.Fprintf(c.Out, "round %d: %s\n", i+1, c.medians([]Round{one}))
		rounds = append(rounds, one)
	}
	c.summary(rounds)
	return rounds, nil
}

// measure takes one run of one side.
func (c *Contest) measure(ctx context.Context, m mode, side Side) (f Figures, err error) {
	s, err := side.Open(ctx)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return m.run(ctx, c, s)
}
