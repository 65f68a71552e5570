package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/redis/internal/server"
	"github.com/backstage-go/backstage/bench/redis/internal/side"
)

// figures are what one run took: here, and in Redis.
type figures struct {
	measure.Sample
	redis          time.Duration // processor time
	executed, sent server.Calls
	lost, twice    int
}

// redisPerJob returns the microseconds of Redis' processor time a job.
func (f figures) redisPerJob() float64 {
	return float64(f.redis.Nanoseconds()) / 1000 / float64(f.Jobs)
}

// round is a run of each side, one after the other.
type round map[string]figures

// cost returns the microseconds of processor time a job, here and in Redis.
func (f figures) cost() float64 { return f.CPUPerJob() + f.redisPerJob() }

// ratios are what is compared: Backstage with each of the others.
func ratios(sides []string) []string {
	if !slices.Contains(sides, side.Backstage) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(sides), func(name string) bool { return name == side.Backstage })
}

func (r round) ratio(to string) float64 { return r[side.Backstage].Rate() / r[to].Rate() }

// costRatio is the same of processor time, which hardly depends on what else the
// machine does: above 1, Backstage takes less.
func (r round) costRatio(to string) float64 { return r[to].cost() / r[side.Backstage].cost() }

func (r round) print(sides []string) string { return medians([]round{r}, sides) }

// medians prints the median of every figure and of every ratio.
func medians(rounds []round, sides []string) string {
	var parts []string
	for _, name := range sides {
		of := func(figure func(figures) float64) float64 {
			return measure.MedianOf(rounds, func(r round) float64 { return figure(r[name]) })
		}
		parts = append(parts, fmt.Sprintf("%s %6.0f jobs/s, %4.1f + %4.1f µs CPU/job", name,
			of(func(f figures) float64 { return f.Rate() }),
			of(func(f figures) float64 { return f.CPUPerJob() }), of(figures.redisPerJob)))
	}
	for _, to := range ratios(sides) {
		parts = append(parts, fmt.Sprintf("× %s %.2f (CPU %.2f)", to,
			measure.MedianOf(rounds, func(r round) float64 { return r.ratio(to) }),
			measure.MedianOf(rounds, func(r round) float64 { return r.costRatio(to) })))
	}
	return strings.Join(parts, "   ")
}
