package rabbitmq

import (
	"context"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// A cluster of three nodes goes on without one of them, and loses nothing. Without two,
// no job is stored; with one more, all goes on.
func TestAClusterThatLosesNodes(t *testing.T) {
	t.Parallel()
	if !soaks() {
		t.Skip("one of the long forms: BACKSTAGE_SOAK=1")
	}
	cluster := brokers.RequireRabbitMQCluster(t)
	nodes := cluster.Nodes()
	b := newBroker(t, nodes[0].Addr(), "")
	b.cfg.URL, b.cfg.Others = nodes[0].URL(), []string{nodes[1].URL(), nodes[2].URL()}
	producer, _ := b.open()
	worker, _ := b.open()
	queues := []string{"a", "b"}
	l := newLedger()
	stop := l.load(t, producer, worker, queues)
	for _, n := range nodes {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
		// It takes a majority some seconds to agree that the third is gone.
		l.resumes(t, "a node died", time.Now(), 30*time.Second)
		if err := n.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Settled(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	l.settle(t, worker, queues, 2*testPatience)

	for _, n := range nodes[1:] {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	lonely := producer.Publish(ctx, []provider.Job{aJob("lonely", "a")}, provider.PublishOptions{})[0]
	if lonely.Outcome == provider.OutcomeStored || lonely.Err == nil {
		t.Errorf("without a majority a job is %s, %v", lonely.Outcome, lonely.Err)
	}
	t.Logf("without a majority a job is %s: %v", lonely.Outcome, lonely.Err)
	if err := nodes[1].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	publish(t, producer, aJob("again", "a"))
	sub := subscribe(t, worker, options(2, "a"))
	for seen := false; !seen; {
		d := receive(t, sub, 1)[0]
		seen = d.job.ID == "again"
		if d.job.ID == "lonely" && lonely.Outcome == provider.OutcomeRefused {
			t.Error("a job that was refused runs")
		}
		ack(t, d)
	}
}
