package main

import (
	"io"
	"testing"

	"github.com/backstage-go/backstage/bench/internal/measure"
)

func TestEveryBacklogIsDrained(t *testing.T) {
	t.Parallel()
	p := plan{rounds: 1, small: 100, large: 300, keyed: 50, slots: 10, dir: t.TempDir()}
	if _, err := p.run(io.Discard); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkRound is one round of 5,000 jobs beside 50,000, with 10,000 of one key.
func BenchmarkRound(b *testing.B) {
	p := plan{small: 5_000, large: 50_000, keyed: 10_000, slots: 100, dir: b.TempDir()}
	var rounds []round
	for b.Loop() {
		r, err := p.round()
		if err != nil {
			b.Fatal(err)
		}
		rounds = append(rounds, r)
	}
	b.ReportMetric(measure.MedianOf(rounds, round.ratio), "×small")
	b.ReportMetric(measure.MedianOf(rounds, round.keyedRatio), "×small-keyed")
	b.ReportMetric(measure.MedianOf(rounds, func(r round) float64 { return r.large.cpu }), "µs-CPU/job")
	b.ReportMetric(0, "ns/op") // a round's time says nothing
}
