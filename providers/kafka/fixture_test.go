package kafka

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// testPatience bounds every wait for what must happen. It is long, because a slow machine
// is not a broken provider.
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

// cluster is a prefix of a test's own on a server.
type cluster struct {
	t      testing.TB
	server string // host:port
	cfg    Config
	in     internals
}

// sharedCluster is a prefix on the shared server, whose topics are deleted when the test
// ends.
func sharedCluster(t testing.TB) *cluster {
	t.Helper()
	return newCluster(t, brokers.SharedKafka(t))
}

func newCluster(t testing.TB, server string) *cluster {
	t.Helper()
	c := &cluster{t: t, server: server,
		cfg: Config{Brokers: []string{server}, Prefix: strings.ToLower(rand.Text()[:10]), Replication: 1}}
	t.Cleanup(c.deleteTopics)
	return c
}

// through sends all connections to another address, such as a proxy's.
func (c *cluster) through(address string) {
	c.cfg.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}

// deleteTopics leaves the server as it was.
func (c *cluster) deleteTopics() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := kafkago.DialContext(ctx, "tcp", c.server)
	if err != nil {
		return // it is gone with the test
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	partitions, err := conn.ReadPartitions()
	if err != nil {
		return
	}
	var topics []string
	for _, p := range partitions {
		if strings.HasPrefix(p.Topic, c.cfg.Prefix+".") && !slices.Contains(topics, p.Topic) {
			topics = append(topics, p.Topic)
		}
	}
	if len(topics) > 0 {
		_ = conn.DeleteTopics(topics...)
	}
}

// open opens the prefix; events are told to the returned log.
func (c *cluster) open() (*store, *eventLog) {
	c.t.Helper()
	s, err := open(c.t.Context(), c.cfg, c.in)
	if err != nil {
		c.t.Fatalf("open: %v", err)
	}
	log := new(eventLog)
	s.provider.Events.Observe(log.add)
	c.t.Cleanup(func() {
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
func until(t testing.TB, what string, is func() bool) {
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
	now := time.Unix(0, time.Now().UnixNano())
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
func publish(t testing.TB, s *store, jobs ...provider.Job) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	for _, stored := range s.Publish(ctx, jobs, provider.PublishOptions{}) {
		if stored.Outcome != provider.OutcomeStored {
			t.Fatalf("publish %s: %s, %v", stored.ID, stored.Outcome, stored.Err)
		}
	}
}

// inTopic returns the records of each partition of a queue's jobs.
func inTopic(t testing.TB, s *store, queue string) [][]received {
	t.Helper()
	topic := s.names.jobs(queue)
	n, err := s.topics.look(t.Context(), topic)
	if err != nil || n == 0 {
		t.Fatalf("topic %s: %d partitions, %v", topic, n, err)
	}
	all := make([][]received, n)
	for i := range all {
		within, err := s.bounds(t.Context(), topic, i)
		if err != nil {
			t.Fatalf("bounds of partition %d: %v", i, err)
		}
		if err := s.scan(t.Context(), topic, i, within[i].FirstOffset, within[i].LastOffset, func(r *received) bool {
			all[i] = append(all[i], *r)
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// addPartitions gives the topic of a queue more partitions.
func addPartitions(t testing.TB, s *store, queue string, count int) {
	t.Helper()
	topic := s.names.jobs(queue)
	r, err := s.client.CreatePartitions(t.Context(), &kafkago.CreatePartitionsRequest{Topics: []kafkago.TopicPartitionsConfig{{Name: topic, Count: int32(count)}}})
	if err == nil {
		err = r.Errors[topic]
	}
	if err != nil {
		t.Fatalf("add partitions to %s: %v", topic, err)
	}
}

func options(slots int, queues ...string) provider.SubscribeOptions {
	opts := provider.SubscribeOptions{Worker: "test", Lease: 30 * time.Second, MaxUnsettled: slots * len(queues)}
	for _, q := range queues {
		opts.Lanes = append(opts.Lanes, provider.Lane{Queue: q, Slots: slots})
	}
	return opts
}

func subscribe(t testing.TB, s *store, opts provider.SubscribeOptions) *subscription {
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
func receive(t testing.TB, sub *subscription, n int) []*delivery {
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

func ack(t testing.TB, ds ...*delivery) {
	t.Helper()
	for _, d := range ds {
		if err := d.Ack(t.Context(), nil); err != nil {
			t.Errorf("ack of %s: %v", d.job.ID, err)
		}
	}
}

// childVariable makes a process of the test binary do what it says.
const childVariable = "BACKSTAGE_KAFKA_CHILD"
