package redisstreams

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

func benchStore(b *testing.B) *store {
	b.Helper()
	s, err := open(b.Context(), Config{URL: "redis://" + brokers.SharedRedis(b), Namespace: rand.Text()}, internals{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.close(context.Background()) })
	return s
}

func someJob(i int) provider.Job {
	now := time.Now()
	return provider.Job{
		ID: fmt.Sprintf("0198c0de-0000-7000-8000-%012d", i), Task: "shop.orders.v1.OrderTasks.ChargeCard", Queue: "q",
		Payload: make([]byte, 128), Enqueued: now, FirstDue: now,
	}
}

// BenchmarkPublishOne is one producer that waits for each answer.
func BenchmarkPublishOne(b *testing.B) {
	s := benchStore(b)
	job := someJob(0)
	b.ReportAllocs()
	for b.Loop() {
		if r := s.Publish(b.Context(), []provider.Job{job}, provider.PublishOptions{}); r[0].Err != nil {
			b.Fatal(r[0].Err)
		}
	}
}

// BenchmarkRoundTrip is many producers, and a worker with a hundred slots.
func BenchmarkRoundTrip(b *testing.B) {
	s := benchStore(b)
	sub, err := s.Subscribe(b.Context(), provider.SubscribeOptions{
		Worker: rand.Text(), Lanes: []provider.Lane{{Queue: "q", Slots: 1}}, MaxUnsettled: 216, Lease: 30 * time.Second,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer sub.Close(context.Background())
	b.ReportAllocs()
	b.ResetTimer()
	var producers, handlers sync.WaitGroup
	for p := range 64 {
		producers.Go(func() {
			for i := p; i < b.N; i += 64 {
				s.Publish(context.Background(), []provider.Job{someJob(i)}, provider.PublishOptions{})
			}
		})
	}
	free := make(chan struct{}, 100)
	for done := 0; done < b.N; {
		free <- struct{}{}
		most := 1
		for range cap(free) - 1 {
			select {
			case free <- struct{}{}:
				most++
				continue
			default:
			}
			break
		}
		got, err := sub.Receive(context.Background(), []string{"q"}, most)
		if err != nil {
			b.Fatal(err)
		}
		for range most - len(got) {
			<-free
		}
		done += len(got)
		for _, d := range got {
			handlers.Go(func() {
				defer func() { <-free }()
				if err := d.Ack(context.Background(), nil); err != nil {
					b.Error(err)
				}
			})
		}
	}
	producers.Wait()
	handlers.Wait()
}
