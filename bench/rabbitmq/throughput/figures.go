package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/side"
)

// figures are what one run took.
type figures struct {
	measure.Sample
	lost, twice int
}

// pair is a run of each side, one after the other.
type pair map[string]figures

// ratio is Backstage's rate in that of the bare loop.
func (p pair) ratio() float64 { return p[side.Backstage].Rate() / p[side.Bare].Rate() }

// costRatio is the same of processor time, which hardly depends on what else the
// machine does: above 1, Backstage takes less.
func (p pair) costRatio() float64 { return p[side.Bare].CPUPerJob() / p[side.Backstage].CPUPerJob() }

// compared says that there is something to compare.
func (p plan) compared() bool {
	return slices.Contains(p.sides, side.Backstage) && slices.Contains(p.sides, side.Bare)
}

// medians returns the median of every figure and of the ratio.
func (p plan) medians(pairs []pair) string {
	var parts []string
	for _, name := range p.sides {
		parts = append(parts, fmt.Sprintf("%s %6.0f jobs/s, %4.1f µs CPU/job", name,
			measure.MedianOf(pairs, func(p pair) float64 { return p[name].Rate() }),
			measure.MedianOf(pairs, func(p pair) float64 { return p[name].CPUPerJob() })))
	}
	if p.compared() {
		parts = append(parts, fmt.Sprintf("%.2f of the bare loop (CPU %.2f)",
			measure.MedianOf(pairs, pair.ratio), measure.MedianOf(pairs, pair.costRatio)))
	}
	return strings.Join(parts, "   ")
}

// summary prints the medians, and what went wrong in all pairs together.
func (p plan) summary(pairs []pair) {
	fmt.Fprintf(p.out, "median: %s\n", p.medians(pairs))
	if p.compared() {
		var ratios []float64
		for _, one := range pairs {
			ratios = append(ratios, one.ratio())
		}
		fmt.Fprintf(p.out, "ratios from %s\n", measure.Spread(ratios))
	}
	for _, name := range p.sides {
		var lost, twice int
		for _, one := range pairs {
			lost += one[name].lost
			twice += one[name].twice
		}
		if lost+twice > 0 {
			fmt.Fprintf(p.out, "%s: %d jobs lost, %d run twice\n", name, lost, twice)
		}
	}
}
