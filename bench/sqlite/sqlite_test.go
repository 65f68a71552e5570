package main

import (
	"io"
	"testing"

	"github.com/backstage-go/backstage/bench/internal/measure"
)

func TestBothSidesRunEveryJob(t *testing.T) {
	t.Parallel()
	p := plan{pairs: 1, jobs: 500, producers: 8, slots: 10, dir: t.TempDir()}
	if _, err := p.run(io.Discard); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkPair is one pair of runs of 20,000 jobs.
func BenchmarkPair(b *testing.B) {
	p := plan{jobs: 20_000, producers: 64, slots: 100, dir: b.TempDir()}
	var pairs []pair
	for b.Loop() {
		one, err := p.pair(len(pairs)%2 == 1)
		if err != nil {
			b.Fatal(err)
		}
		pairs = append(pairs, one)
	}
	report(b, pairs)
}

func report(b *testing.B, pairs []pair) {
	b.ReportMetric(measure.MedianOf(pairs, pair.ratio), "×bare")
	b.ReportMetric(measure.MedianOf(pairs, func(p pair) float64 { return p.backstage.Rate() }), "jobs/s")
	b.ReportMetric(measure.MedianOf(pairs, func(p pair) float64 { return p.backstage.CPUPerJob() }), "µs-CPU/job")
	b.ReportMetric(0, "ns/op") // a pair's time says nothing
}
