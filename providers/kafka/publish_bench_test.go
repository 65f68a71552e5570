package kafka

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

func benchStore(b *testing.B) *store {
	b.Helper()
	c := sharedCluster(b)
	c.cfg.Partitions = 4
	s, err := open(b.Context(), c.cfg, c.in)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.close(context.Background()) })
	until(b, "each partition takes jobs", func() bool {
		publish(b, s, someJobs(40, "q")...)
		return !slices.ContainsFunc(inTopic(b, s, "q"), func(records []received) bool { return len(records) == 0 })
	})
	return s
}

// shared lets some producers do something b.N times together.
func shared(b *testing.B, producers int, do func(i int) error) {
	b.ReportAllocs()
	b.ResetTimer()
	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() {
			for i := p; i < b.N; i += producers {
				if err := do(i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkPublish is producers that wait for each answer.
func BenchmarkPublish(b *testing.B) {
	for _, producers := range []int{1, 64, 256} {
		b.Run(fmt.Sprint(producers), func(b *testing.B) {
			s := benchStore(b)
			job := aJob("0198c0de-0000-7000-8000-000000000000", "q")
			job.Payload = make([]byte, 128)
			shared(b, producers, func(int) error {
				return s.Publish(context.Background(), []provider.Job{job}, provider.PublishOptions{})[0].Err
			})
		})
	}
}

// BenchmarkBareWriter is the same with the client's own Writer.
func BenchmarkBareWriter(b *testing.B) {
	for _, producers := range []int{1, 64, 256} {
		b.Run(fmt.Sprint(producers), func(b *testing.B) {
			s := benchStore(b)
			w := &kafkago.Writer{Addr: kafkago.TCP(s.cfg.Brokers...), Topic: s.names.jobs("q"), RequiredAcks: kafkago.RequireAll, BatchTimeout: time.Millisecond, Transport: s.wires.transport}
			defer w.Close()
			value := make([]byte, 240)
			shared(b, producers, func(int) error {
				return w.WriteMessages(context.Background(), kafkago.Message{Value: value})
			})
		})
	}
}
