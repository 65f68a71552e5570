package main

import (
	"io"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"

	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/server"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/side"
)

func testPlan(t testing.TB) plan {
	return plan{
		pairs: 1, jobs: 2500, producers: 8, slots: 10, batch: 1500, out: io.Discard,
		sides:  []string{side.Bare, side.Backstage},
		server: &server.Server{RabbitMQ: brokers.RequireRabbitMQ(t, brokers.RabbitMQOptions{})},
	}
}

func TestBothSidesRunEveryJobOnce(t *testing.T) {
	t.Parallel()
	p := testPlan(t)
	all, err := p.run(t.Context(), modes())
	if err != nil {
		t.Fatal(err)
	}
	for mode, pairs := range all {
		for name, f := range pairs[0] {
			if f.lost+f.twice > 0 || f.Rate() <= 0 {
				t.Errorf("%s, %s: %d jobs lost, %d run twice, %v a second", mode, name, f.lost, f.twice, f.Rate())
			}
		}
	}
}

// BenchmarkPair is one pair of runs of 20,000 jobs from end to end.
func BenchmarkPair(b *testing.B) {
	p := testPlan(b)
	p.jobs, p.producers, p.slots = 20_000, 64, 100
	endToEnd, err := modesOf("end-to-end")
	if err != nil {
		b.Fatal(err)
	}
	var pairs []pair
	for b.Loop() {
		all, err := p.run(b.Context(), endToEnd)
		if err != nil {
			b.Fatal(err)
		}
		pairs = append(pairs, all["end-to-end"]...)
	}
	b.ReportMetric(measure.MedianOf(pairs, pair.ratio), "×bare")
	b.ReportMetric(measure.MedianOf(pairs, func(p pair) float64 { return p[side.Backstage].Rate() }), "jobs/s")
	b.ReportMetric(0, "ns/op") // a pair's time says nothing
}
