package backstage_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// BenchmarkJob is one job from NewJob to its ack, on the memory provider.
func BenchmarkJob(b *testing.B) {
	p, err := memory.Open(memory.Config{})
	if err != nil {
		b.Fatal(err)
	}
	client, err := backstage.NewClient(p, backstage.ClientConfig{})
	if err != nil {
		b.Fatal(err)
	}
	var done sync.WaitGroup
	worker, err := backstage.NewWorker(p, backstage.WorkerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	handle("a", func(context.Context, string) error { done.Done(); return nil })(worker)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	in := wrapperspb.String("payload")
	a := task("a")
	b.ReportAllocs()
	for b.Loop() {
		done.Add(1)
		if _, err := backstage.Enqueue(ctx, client, backstage.NewJob(a, in)); err != nil {
			b.Fatal(err)
		}
	}
	done.Wait()
	b.StopTimer()
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkProvider is the same by the provider alone: what the runtime adds is the
// difference.
func BenchmarkProvider(b *testing.B) {
	p, err := memory.Open(memory.Config{})
	if err != nil {
		b.Fatal(err)
	}
	sub, err := p.Jobs.Subscribe(b.Context(), provider.SubscribeOptions{Worker: "w", Lanes: []provider.Lane{{Queue: "q"}}, MaxUnsettled: 10, Lease: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		p.Jobs.Publish(b.Context(), []provider.Job{{ID: "j", Task: "a", Queue: "q", Payload: []byte("payload")}}, provider.PublishOptions{})
		deliveries, err := sub.Receive(b.Context(), []string{"q"}, 10)
		if err != nil {
			b.Fatal(err)
		}
		if err := deliveries[0].Ack(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
