package rabbitmq

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// testPatience bounds every wait for what must happen. It is long, because a slow machine is
// not a broken provider.
const testPatience = 2 * time.Minute

// soaks reports whether the long forms of the tests run.
func soaks() bool { return os.Getenv("BACKSTAGE_SOAK") != "" }

// often is how often a fault is tried.
func often(few, soak int) int {
	if soaks() {
		return soak
	}
	return few
}

// broker is a virtual host on a server, for one test.
type broker struct {
	t      *testing.T
	server string // host:port
	vhost  string
	cfg    Config
	in     internals
}

// sharedBroker is a virtual host of the test's own on the shared server.
func sharedBroker(t *testing.T) *broker {
	t.Helper()
	server := brokers.SharedRabbitMQ(t)
	return newBroker(t, server, virtualHost(t, server))
}

func newBroker(t *testing.T, server, vhost string) *broker {
	return &broker{t: t, server: server, vhost: vhost, in: internals{levels: 1, youth: 1},
		cfg: Config{URL: "amqp://guest:guest@" + server + "/" + vhost}}
}

// open opens the virtual host; events are told to the returned log.
func (b *broker) open() (*store, *eventLog) {
	b.t.Helper()
	s, err := open(b.t.Context(), b.cfg, b.in)
	if err != nil {
		b.t.Fatalf("open: %v", err)
	}
	log := new(eventLog)
	s.provider.Events.Observe(log.add)
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testPatience)
		defer cancel()
		_ = s.provider.Close(ctx)
	})
	return s, log
}

// eventLog keeps what a provider told.
type eventLog struct {
	mu  sync.Mutex
	all []provider.Event
}

func (l *eventLog) add(e provider.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
}

// has reports whether an event of a kind was told, whose message says something.
func (l *eventLog) has(k provider.Kind, says string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.all, func(e provider.Event) bool { return e.Kind == k && strings.Contains(e.Message, says) })
}

// until waits for something.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	late := time.After(testPatience)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("not within %v: %s", testPatience, what)
		}
	}
}

func aJob(id, queue string) provider.Job {
	now := now()
	return provider.Job{ID: id, Task: "test.Task", Queue: queue, Payload: []byte(id), Enqueued: now, FirstDue: now}
}

func someJobs(n int, queue string) []provider.Job {
	jobs := make([]provider.Job, n)
	for i := range jobs {
		jobs[i] = aJob(fmt.Sprintf("%s-%d", queue, i), queue)
	}
	return jobs
}

// publish stores jobs.
func publish(t *testing.T, s *store, jobs ...provider.Job) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	for _, stored := range s.Publish(ctx, jobs, provider.PublishOptions{}) {
		if stored.Outcome != provider.OutcomeStored {
			t.Fatalf("publish %s: %s, %v", stored.ID, stored.Outcome, stored.Err)
		}
	}
}

func options(slots int, queues ...string) provider.SubscribeOptions {
	opts := provider.SubscribeOptions{Worker: "test", Lease: 30 * time.Second, MaxUnsettled: slots * len(queues)}
	for _, q := range queues {
		opts.Lanes = append(opts.Lanes, provider.Lane{Queue: q, Slots: slots})
	}
	return opts
}

func subscribe(t *testing.T, s *store, opts provider.SubscribeOptions) *subscription {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	sub, err := s.Subscribe(ctx, opts)
	if err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	return sub.(*subscription)
}

// receive takes n deliveries.
func receive(t *testing.T, sub *subscription, n int) []*delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	var queues []string
	for queue := range sub.lanes {
		queues = append(queues, queue)
	}
	var got []*delivery
	for len(got) < n {
		ds, err := sub.Receive(ctx, queues, n-len(got))
		for _, d := range ds {
			got = append(got, d.(*delivery))
		}
		if err != nil {
			t.Fatalf("receive: %v; %d of %d came", err, len(got), n)
		}
	}
	return got
}

func ack(t *testing.T, ds ...*delivery) {
	t.Helper()
	for _, d := range ds {
		if err := d.Ack(t.Context(), nil); err != nil {
			t.Errorf("ack of %s: %v", d.job.ID, err)
		}
	}
}
