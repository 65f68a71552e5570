package rabbitmq

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

func TestConnectionsAreEncrypted(t *testing.T) {
	t.Parallel()
	r := brokers.RequireRabbitMQ(t, brokers.RabbitMQOptions{TLS: true})
	b := newBroker(t, r.Addr(), "")
	b.cfg.URL, b.cfg.TLS = r.URL(), r.TLS()
	s, _ := b.open()
	publish(t, s, someJobs(10, "work")...)
	ack(t, receive(t, subscribe(t, s, options(10, "work")), 10)...)
	if err := s.provider.Health(t.Context()); err != nil {
		t.Errorf("health: %v", err)
	}
	for want, cfg := range map[string]Config{
		"certificate":            {URL: r.URL(), TLS: &tls.Config{}},
		"connection is lost, or": {URL: brokers.RabbitMQURL(r.Addr()), Timeout: 5 * time.Second},
	} {
		if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error that says %q", cfg.URL, err, want)
		}
	}
}

// The server takes all jobs of a lane from a worker that has one for longer than its
// consumer_timeout, and closes the channel. The worker knows that they are lost, other
// lanes keep theirs, and the jobs come again.
func TestWhatRunsBeyondTheConsumerTimeoutIsLostAndComesAgain(t *testing.T) {
	t.Parallel()
	r := brokers.RequireRabbitMQ(t, brokers.RabbitMQOptions{
		Conf: []string{"consumer_timeout = 2000"}, Terms: []string{"{channel_tick_interval, 500}"},
	})
	b := newBroker(t, r.Addr(), "")
	b.cfg.URL = r.URL() // nobody tells the provider
	s, _ := b.open()
	publish(t, s, someJobs(2, "work")...)
	sub := subscribe(t, s, options(2, "work"))
	slow := receive(t, sub, 2)
	select {
	case <-slow[0].Lost():
	case <-time.After(testPatience):
		t.Fatal("the server keeps a job from nobody, however long it runs")
	}
	if why := slow[0].source.why(); why == nil || !strings.Contains(why.Error(), "longer than the server's consumer_timeout") {
		t.Errorf("it is lost because of %v; want the consumer_timeout", why)
	}
	for _, d := range slow {
		if err := d.Ack(t.Context(), nil); !errors.Is(err, provider.ErrLeaseLost) {
			t.Errorf("ack of %s, which was lost: %v", d.job.ID, err)
		}
	}
	for _, d := range receive(t, sub, 2) {
		if d.job.Counters.Crashes == 0 {
			t.Errorf("%s came again, and nobody counts it: %+v", d.job.ID, d.job.Counters)
		}
		ack(t, d)
	}
	until(t, "the worker is well", func() bool { return s.provider.Health(t.Context()) == nil })
}
