package kafka

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/backstage-go/backstage/runtime/provider"
)

// consume runs n jobs with some slots: each waits for its own settlement.
func consume(b *testing.B, sub *subscription, slots, n int) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	free := make(chan struct{}, slots)
	var running sync.WaitGroup
	for n > 0 {
		free <- struct{}{}
		room := 1
		for len(free) < slots && room < n {
			free <- struct{}{}
			room++
		}
		ds, err := sub.Receive(ctx, []string{"q"}, room)
		if err != nil {
			b.Error(err)
			break
		}
		n -= len(ds)
		for range room - len(ds) {
			<-free
		}
		for _, d := range ds {
			running.Go(func() {
				<-free // the handler has returned
				if err := d.Ack(ctx, nil); err != nil {
					b.Error(err)
				}
			})
		}
	}
	running.Wait()
}

// BenchmarkDrain works off what waits.
func BenchmarkDrain(b *testing.B) {
	for _, slots := range []int{10, 100} {
		b.Run(fmt.Sprint(slots), func(b *testing.B) {
			s := benchStore(b)
			sub := subscribe(b, s, options(slots, "q"))
			b.Cleanup(func() { _ = sub.Close(context.Background()) })
			waiting, _ := s.provider.Stats.Queue(b.Context(), "q")
			depth, _ := waiting.Depth.Get()
			consume(b, sub, slots, int(depth))
			jobs := someJobs(b.N, "q")
			for len(jobs) > 0 {
				some := min(len(jobs), 1000)
				publish(b, s, jobs[:some]...)
				jobs = jobs[some:]
			}
			b.ReportAllocs()
			b.ResetTimer()
			consume(b, sub, slots, b.N)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkEndToEnd is 64 producers and one worker at once.
func BenchmarkEndToEnd(b *testing.B) {
	const slots = 100
	s := benchStore(b)
	sub := subscribe(b, s, options(slots, "q"))
	b.Cleanup(func() { _ = sub.Close(context.Background()) })
	waiting, _ := s.provider.Stats.Queue(b.Context(), "q")
	depth, _ := waiting.Depth.Get()
	consume(b, sub, slots, int(depth))
	job := aJob("0198c0de-0000-7000-8000-000000000000", "q")
	job.Payload = make([]byte, 128)
	done := make(chan struct{})
	b.ResetTimer()
	go func() {
		defer close(done)
		consume(b, sub, slots, b.N)
	}()
	shared(b, 64, func(int) error {
		return s.Publish(context.Background(), []provider.Job{job}, provider.PublishOptions{})[0].Err
	})
	<-done
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
