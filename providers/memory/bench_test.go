package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime/provider"
)

// BenchmarkJob is a job's way through the provider, from publish to ack.
func BenchmarkJob(b *testing.B) {
	for _, backlog := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("backlog=%d", backlog), func(b *testing.B) {
			sub, p := benchmarkWorker(b)
			jobs := []provider.Job{{ID: "job", Task: "t.v1.Tasks.Do", Queue: "q"}}
			for range backlog {
				p.Jobs.Publish(b.Context(), jobs, provider.PublishOptions{})
			}
			lanes := []string{"q"}
			b.ReportAllocs()
			for b.Loop() {
				p.Jobs.Publish(b.Context(), jobs, provider.PublishOptions{})
				got, err := sub.Receive(b.Context(), lanes, 1)
				if err != nil {
					b.Fatal(err)
				}
				_ = got[0].Lost()
				if err := got[0].Ack(b.Context(), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBatch is the same for 100 jobs at a time, with their heartbeat.
func BenchmarkBatch(b *testing.B) {
	sub, p := benchmarkWorker(b)
	jobs := make([]provider.Job, 100)
	for i := range jobs {
		jobs[i] = provider.Job{ID: fmt.Sprint("job-", i), Task: "t.v1.Tasks.Do", Queue: "q"}
	}
	lanes := []string{"q"}
	b.ReportAllocs()
	for b.Loop() {
		p.Jobs.Publish(b.Context(), jobs, provider.PublishOptions{})
		got, _ := sub.Receive(b.Context(), lanes, 100)
		sub.Extend(b.Context(), got)
		for _, d := range got {
			if err := d.Ack(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(100*b.N), "ns/job")
}

func benchmarkWorker(b *testing.B) (provider.Subscription, *provider.Provider) {
	p, err := memory.Open(memory.Config{})
	if err != nil {
		b.Fatal(err)
	}
	sub, err := p.Jobs.Subscribe(b.Context(), provider.SubscribeOptions{
		Worker: "w", Lanes: []provider.Lane{{Queue: "q", Slots: 100}}, MaxUnsettled: 100, Lease: 30 * time.Second,
	})
	if err != nil {
		b.Fatal(err)
	}
	return sub, p
}
