package contest

import (
	"fmt"
	"strings"

	"github.com/backstage-go/backstage/bench/internal/measure"
)

// Figures are what one run took.
type Figures struct {
	measure.Sample
	// Lost is how many jobs have not run, Twice how many runs were not a job's first.
	Lost, Twice int
}

// Round is a run of each side, by name.
type Round map[string]Figures

// Ratio is one side's rate in that of another.
func (r Round) Ratio(one, other string) float64 { return r[one].Rate() / r[other].Rate() }

// costRatio is the same of processor time, which hardly depends on what else the
// machine does: above 1, the first takes less.
func (r Round) costRatio(one, other string) float64 { return r[other].CPUPerJob() / r[one].CPUPerJob() }

// medians returns the median of every figure and of the ratios.
func (c *Contest) medians(rounds []Round) string {
	var parts []string
	for _, name := range c.Names() {
		parts = append(parts, fmt.Sprintf("%s %6.0f jobs/s, %4.1f µs CPU/job", name,
			measure.MedianOf(rounds, func(r Round) float64 { return r[name].Rate() }),
			measure.MedianOf(rounds, func(r Round) float64 { return r[name].CPUPerJob() })))
	}
	first := c.Sides[0].Name
	for _, other := range c.Names()[1:] {
		parts = append(parts, fmt.Sprintf("%.2f × %s (CPU %.2f)",
			measure.MedianOf(rounds, func(r Round) float64 { return r.Ratio(first, other) }), other,
			measure.MedianOf(rounds, func(r Round) float64 { return r.costRatio(first, other) })))
	}
	return strings.Join(parts, "   ")
}

// summary prints the medians, and what went wrong in all rounds together.
func (c *Contest) summary(rounds []Round) {
	fmt.Fprintf(c.Out, "median: %s\n", c.medians(rounds))
	for _, other := range c.Names()[1:] {
		var ratios []float64
		for _, one := range rounds {
			ratios = append(ratios, one.Ratio(c.Sides[0].Name, other))
		}
		fmt.Fprintf(c.Out, "ratios to %s from %s\n", other, measure.Spread(ratios))
	}
	for _, name := range c.Names() {
		var lost, twice int
		for _, one := range rounds {
			lost += one[name].Lost
			twice += one[name].Twice
		}
		fmt.Fprintf(c.Out, "%s: %d jobs lost, %d run twice\n", name, lost, twice)
	}
}
