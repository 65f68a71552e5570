package main

import (
	"io"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"

	"github.com/backstage-go/backstage/bench/internal/contest"
	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/server"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/side"
)

func testContest(t testing.TB) contest.Contest {
	return contest.Contest{
		Sides:  side.All(&server.Server{RabbitMQ: brokers.RequireRabbitMQ(t, brokers.RabbitMQOptions{})}),
		Rounds: 1, Jobs: 2500, Producers: 8, Slots: 10, Batch: 1500, Out: io.Discard,
	}
}

func TestBothSidesRunEveryJobOnce(t *testing.T) {
	t.Parallel()
	c := testContest(t)
	all, err := c.Run(t.Context(), contest.Modes())
	if err != nil {
		t.Fatal(err)
	}
	for mode, rounds := range all {
		for name, f := range rounds[0] {
			if f.Lost+f.Twice > 0 || f.Rate() <= 0 {
				t.Errorf("%s, %s: %d jobs lost, %d run twice, %v a second", mode, name, f.Lost, f.Twice, f.Rate())
			}
		}
	}
}

// BenchmarkRound is a round of 20,000 jobs from end to end.
func BenchmarkRound(b *testing.B) {
	c := testContest(b)
	c.Jobs, c.Producers, c.Slots = 20_000, 64, 100
	var rounds []contest.Round
	for b.Loop() {
		all, err := c.Run(b.Context(), "end-to-end")
		if err != nil {
			b.Fatal(err)
		}
		rounds = append(rounds, all["end-to-end"]...)
	}
	b.ReportMetric(measure.MedianOf(rounds, func(r contest.Round) float64 { return r.Ratio(side.Backstage, side.Bare) }), "×bare")
	b.ReportMetric(measure.MedianOf(rounds, func(r contest.Round) float64 { return r[side.Backstage].Rate() }), "jobs/s")
	b.ReportMetric(0, "ns/op") // a round's time says nothing
}
