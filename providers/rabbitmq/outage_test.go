package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// A broker that is killed under load, and started again, loses nothing that it had
// confirmed; what runs again is what was not settled, or settled in its last moment.
func TestABrokerThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	r := brokers.RequireRabbitMQ(t, brokers.RabbitMQOptions{})
	b := newBroker(t, r.Addr(), "")
	b.cfg.URL = r.URL()
	b.in = internals{}
	producer, _ := b.open()
	worker, log := b.open()
	queues := []string{"a", "b", "c", "d"}
	l := newLedger()
	stop := l.load(t, producer, worker, queues)
	for n := range often(2, 20) {
		if !sleep(t.Context(), time.Duration(1+n%3)*time.Second) {
			break
		}
		// A queue that was declared a moment before.
		fresh := aJob(fmt.Sprint("fresh-", n), fmt.Sprint("fresh-", n))
		publish(t, producer, fresh)
		l.mu.Lock()
		l.stored[fresh.ID] = true
		l.mu.Unlock()
		queues = append(queues, fresh.Queue)
		if err := r.Kill(); err != nil {
			t.Fatal(err)
		}
		until(t, "health says that the worker is deaf", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return worker.provider.Health(ctx) != nil
		})
		if err := r.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.resumes(t, "the broker's return", time.Now(), 10*time.Second)
	}
	stop()
	l.settle(t, worker, queues, 3*testPatience)
	until(t, "health is well again", func() bool { return worker.provider.Health(t.Context()) == nil })
	if !log.has(provider.Disconnected, "") || !log.has(provider.Reconnected, "") {
		t.Errorf("the outages were not told: %+v", log.all)
	}
}

// Connections that the server closes under load lose nothing either.
func TestConnectionsThatTheServerCloses(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	producer, _ := b.open()
	worker, _ := b.open()
	queues := []string{"a", "b"}
	l := newLedger()
	stop := l.load(t, producer, worker, queues)
	for range often(4, 40) {
		if !sleep(t.Context(), 500*time.Millisecond) {
			break
		}
		for _, s := range []*store{producer, worker} {
			links := []*link{s.publisher.link, s.admin.link}
			for _, sub := range s.subscriptions() {
				links = append(links, sub.link)
			}
			for _, each := range links {
				if c, _, _ := each.state(); c != nil {
					b.forceClosed(c)
				}
			}
		}
		l.resumes(t, "the connections were closed", time.Now(), 10*time.Second)
	}
	stop()
	l.settle(t, worker, queues, testPatience)
}

// forceClosed has the server close a connection. The API sees a new one late; then the
// client's end is cut.
func (b *broker) forceClosed(c *connection) {
	name := fmt.Sprintf("%s -> %s", c.LocalAddr(), c.RemoteAddr())
	request, err := http.NewRequest(http.MethodDelete, brokers.RabbitMQManagement(b.server)+"/api/connections/"+strings.ReplaceAll(strings.ReplaceAll(name, " ", "%20"), ">", "%3E"), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if response, err := http.DefaultClient.Do(request); err != nil {
		b.t.Errorf("management API: %v", err)
	} else {
		response.Body.Close()
	}
	select {
	case <-c.closed:
	case <-time.After(time.Second):
		c.wire.fail(errEnded)
	}
}

// A connection that is half open, because the network is gone without a word, is given
// up on both sides within the lease.
func TestAConnectionThatIsHalfOpen(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	proxy := brokers.StartProxy(t, b.server)
	far := *b
	far.cfg.URL = "amqp://guest:guest@" + proxy.Addr() + "/" + b.vhost
	cut, _ := far.open()
	heir, _ := b.open()
	publish(t, heir, aJob("job", "work"))
	opts := options(1, "work")
	opts.Lease = 3 * time.Second
	sub := subscribe(t, cut, opts)
	d := receive(t, sub, 1)[0]
	proxy.Blackhole()
	began := time.Now()
	again := receive(t, subscribe(t, heir, options(1, "work")), 1)[0]
	took := time.Since(began)
	if again.job.ID != d.job.ID || took > opts.Lease+5*time.Second {
		t.Errorf("%s came after %v; want %s within %v", again.job.ID, took, d.job.ID, opts.Lease+5*time.Second)
	}
	select {
	case <-d.Lost():
	case <-time.After(testPatience):
		t.Error("the worker that was cut off does not know that its job is lost")
	}
	if err := d.Ack(t.Context(), nil); !errors.Is(err, provider.ErrLeaseLost) {
		t.Errorf("ack of a worker that was cut off: %v", err)
	}
	ack(t, again)
	proxy.Resume()
	publish(t, heir, aJob("next", "other"))
	until(t, "the worker is well again", func() bool { return cut.provider.Health(t.Context()) == nil })
}

// A broker that takes no jobs because of an alarm holds up those who publish, and says so;
// what is running is settled.
func TestAnAlarmHoldsUpPublishers(t *testing.T) {
	t.Parallel()
	r := brokers.RequireRabbitMQ(t, brokers.RabbitMQOptions{})
	b := newBroker(t, r.Addr(), "")
	b.cfg.URL = r.URL()
	s, log := b.open()
	publish(t, s, someJobs(2, "work")...)
	sub := subscribe(t, s, options(2, "work"))
	ds := receive(t, sub, 2)
	if err := r.Ctl(t.Context(), "set_disk_free_limit", "100000GB"); err != nil {
		t.Skip(err)
	}
	short := func() provider.Stored {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return s.Publish(ctx, []provider.Job{aJob("held up", "work")}, provider.PublishOptions{})[0]
	}
	until(t, "a job is refused, because the broker takes none", func() bool {
		stored := short()
		return stored.Outcome == provider.OutcomeRefused && strings.Contains(stored.Err.Error(), "alarm")
	})
	if err := s.provider.Health(t.Context()); err == nil || !strings.Contains(err.Error(), "alarm") {
		t.Errorf("health in an alarm: %v", err)
	}
	if !log.has(provider.Blocked, "") {
		t.Errorf("the alarm is not told: %+v", log.all)
	}
	ack(t, ds...)
	waiting := make(chan provider.Stored, 1)
	go func() {
		waiting <- s.Publish(t.Context(), []provider.Job{aJob("patient", "work")}, provider.PublishOptions{})[0]
	}()
	if err := r.Ctl(t.Context(), "set_disk_free_limit", "1MB"); err != nil {
		t.Fatal(err)
	}
	if stored := <-waiting; stored.Outcome != provider.OutcomeStored {
		t.Errorf("a job that waited for the end of the alarm: %s, %v", stored.Outcome, stored.Err)
	}
	until(t, "health is well again", func() bool { return s.provider.Health(t.Context()) == nil })
	if !log.has(provider.Unblocked, "") {
		t.Errorf("the end of the alarm is not told: %+v", log.all)
	}
}
