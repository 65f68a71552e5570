package main

import (
	"io"
	"testing"

	"github.com/backstage-go/backstage/bench/internal/measure"
)

func TestAModuleOfSchemasIsGenerated(t *testing.T) {
	t.Parallel()
	if _, err := (plan{rounds: 1, schemas: 8}).run(io.Discard); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkRound is one round of 300 schemas.
func BenchmarkRound(b *testing.B) {
	p := plan{schemas: 300}
	var rounds []round
	for b.Loop() {
		r, err := p.round(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		rounds = append(rounds, r)
	}
	b.ReportMetric(measure.MedianOf(rounds, func(r round) float64 { return r.all.Wall.Seconds() }), "s/300")
	b.ReportMetric(measure.MedianOf(rounds, round.ratio), "×messages")
	b.ReportMetric(0, "ns/op") // a round's time says nothing
}
