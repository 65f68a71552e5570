package main

import (
	"io"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"

	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/redis/internal/server"
	"github.com/backstage-go/backstage/bench/redis/internal/side"
)

func testPlan(t testing.TB) plan {
	return plan{
		rounds: 1, jobs: 500, producers: 8, slots: 10, out: io.Discard,
		sides:  []string{side.Bare, side.Backstage, side.Asynq},
		server: server.Of(brokers.RequireRedis(t, brokers.RedisOptions{})),
	}
}

func TestAllSidesRunEveryJobOnce(t *testing.T) {
	t.Parallel()
	p := testPlan(t)
	rounds, err := p.run(t.Context(), modes())
	if err != nil {
		t.Fatal(err)
	}
	for mode, list := range rounds {
		for name, f := range list[0] {
			if f.lost+f.twice > 0 {
				t.Errorf("%s, %s: %d jobs lost, %d run twice", mode, name, f.lost, f.twice)
			}
			if f.executed.Total() == 0 {
				t.Errorf("%s, %s: no command reached Redis", mode, name)
			}
		}
	}
}

func TestSentCommandsAreThoseThatRedisExecutes(t *testing.T) {
	t.Parallel()
	p := testPlan(t)
	enqueue, err := modesOf("enqueue")
	if err != nil {
		t.Fatal(err)
	}
	var sent server.Sent
	f, err := p.measure(t.Context(), enqueue[0], side.Bare, &sent)
	if err != nil {
		t.Fatal(err)
	}
	if f.sent["xadd"] != int64(p.jobs) || f.executed["xadd"] != int64(p.jobs) {
		t.Errorf("sent %v, executed %v, want %d xadd each", f.sent, f.executed, p.jobs)
	}
}

// BenchmarkRound is one round of 20,000 jobs from end to end.
func BenchmarkRound(b *testing.B) {
	p := testPlan(b)
	p.jobs, p.producers, p.slots = 20_000, 64, 100
	endToEnd, err := modesOf("end-to-end")
	if err != nil {
		b.Fatal(err)
	}
	var rounds []round
	for b.Loop() {
		all, err := p.run(b.Context(), endToEnd)
		if err != nil {
			b.Fatal(err)
		}
		rounds = append(rounds, all["end-to-end"]...)
	}
	for _, to := range ratios(p.sides) {
		b.ReportMetric(measure.MedianOf(rounds, func(r round) float64 { return r.ratio(to) }), "×"+to)
	}
	b.ReportMetric(measure.MedianOf(rounds, func(r round) float64 { return r[side.Backstage].Rate() }), "jobs/s")
	b.ReportMetric(0, "ns/op") // a round's time says nothing
}
