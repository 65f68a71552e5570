package main

import (
	"io"
	"testing"

	"github.com/backstage-go/backstage/bench/internal/measure"
)

func TestEveryJobRuns(t *testing.T) {
	t.Parallel()
	p := plan{rounds: 1, jobs: 1000, slots: 10}
	if _, err := p.run(io.Discard); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkRound is one round of 50,000 jobs.
func BenchmarkRound(b *testing.B) {
	p := plan{jobs: 50_000, slots: 100}
	var rounds []round
	for b.Loop() {
		r, err := p.round()
		if err != nil {
			b.Fatal(err)
		}
		rounds = append(rounds, r)
	}
	b.ReportMetric(measure.MedianOf(rounds, round.singleWall), "µs/single")
	b.ReportMetric(measure.MedianOf(rounds, round.batchWall), "µs/batched")
	b.ReportMetric(measure.MedianOf(rounds, round.singleCPU), "µs-CPU/single")
	b.ReportMetric(measure.MedianOf(rounds, round.singleAllocs), "allocs/single")
	b.ReportMetric(measure.MedianOf(rounds, round.batchCPU), "µs-CPU/batched")
	b.ReportMetric(measure.MedianOf(rounds, round.batchAllocs), "allocs/batched")
	b.ReportMetric(0, "ns/op") // a round's time says nothing
}
