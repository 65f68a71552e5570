// Package ctltest makes dead letters for the tests of backstagectl.
package ctltest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Job returns a job with nothing odd about it.
func Job(id string) provider.Job {
	now := time.Now()
	return provider.Job{ID: id, Task: "shop.v1.OrderTasks.Charge", Queue: "orders", Enqueued: now, FirstDue: now}
}

// Jobs returns so many jobs, …
func Jobs(n int) []provider.Job {
	jobs := make([]provider.Job, n)
	for i := range jobs {
		jobs[i] = Job(fmt.Sprintf("A-%03d", i+1))
	}
	return jobs
}

// Failed is what most jobs die of.
func Failed() provider.Failure {
	return provider.Failure{Class: provider.ClassExhausted, Message: "card declined", Worker: "web-1", Attempt: 5}
}

// Bury stores jobs and dead-letters each, in their order.
func Bury(t testing.TB, p *provider.Provider, f provider.Failure, jobs ...provider.Job) {
	t.Helper()
	for i, s := range p.Jobs.Publish(t.Context(), jobs, provider.PublishOptions{}) {
		if s.Outcome != provider.OutcomeStored {
			t.Fatalf("publish %s: %s, %v", jobs[i].ID, s.Outcome, s.Err)
		}
	}
	queues := map[string]int{}
	for _, j := range jobs {
		queues[j.Queue]++
	}
	for queue, n := range queues {
		bury(t, p, f, queue, n)
	}
}

// bury dead-letters the next jobs of a queue.
func bury(t testing.TB, p *provider.Provider, f provider.Failure, queue string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sub, err := p.Jobs.Subscribe(ctx, provider.SubscribeOptions{
		Worker: fmt.Sprintf("undertaker-%d", time.Now().UnixNano()), Lanes: []provider.Lane{{Queue: queue, Slots: 1}}, MaxUnsettled: 1, Lease: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		deliveries, err := sub.Receive(ctx, []string{queue}, 1)
		if err != nil {
			t.Fatal(err)
		}
		failure := f
		failure.At = time.Now()
		if err := deliveries[0].DeadLetter(ctx, failure); err != nil {
			t.Fatal(err)
		}
	}
	if err := sub.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// Letters returns all dead letters, newest first.
func Letters(t testing.TB, p *provider.Provider) []provider.DeadLetter {
	t.Helper()
	var all []provider.DeadLetter
	for page := ""; ; {
		letters, next, err := p.Dead.List(t.Context(), provider.DeadFilter{}, page)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, letters...)
		if page = next; page == "" {
			return all
		}
	}
}
