package brokers

import (
	"context"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"
)

// checkGreets checks whether a server answers within a short time.
func checkGreets(t *testing.T, address string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return greets(ctx, address, nil)
}

// untilSilent waits until a server that was paused answers no more: what it was doing when
// it was told may still come.
func untilSilent(t *testing.T, ask func() error) {
	t.Helper()
	if err := until(t.Context(), 30*time.Second, func(context.Context) error {
		if ask() == nil {
			return errors.New("it answers")
		}
		return nil
	}); err != nil {
		t.Errorf("a server that is paused: %v", err)
	}
}

func TestRabbitMQComesBackAtItsAddress(t *testing.T) {
	t.Parallel()
	r := RequireRabbitMQ(t, RabbitMQOptions{Conf: []string{"heartbeat = 7"}})
	address := r.Addr()
	for _, end := range []func() error{r.Kill, r.Kill, func() error { return r.Stop(t.Context()) }} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if checkGreets(t, address) == nil {
			t.Fatal("a server that has ended answers")
		}
	}
	if err := r.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := greets(t.Context(), r.Addr(), nil); err != nil || r.Addr() != address {
		t.Errorf("after a restart the server on %s, which was on %s: %v", r.Addr(), address, err)
	}
	response, err := http.Get(r.Management() + "/api/overview")
	if err != nil {
		t.Fatalf("the management API does not answer: %v", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("the management API answers %s", response.Status)
	}
}

func TestRabbitMQStopsWhenItIsAsked(t *testing.T) {
	t.Parallel()
	r := RequireRabbitMQ(t, RabbitMQOptions{})
	if err := r.Pause(); err != nil {
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	untilSilent(t, func() error { return checkGreets(t, r.Addr()) })
	if err := r.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := greets(t.Context(), r.Addr(), nil); err != nil {
		t.Errorf("a server that went on does not answer: %v", err)
	}
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if checkGreets(t, r.Addr()) == nil {
		t.Error("a server that was stopped answers")
	}
}

func TestRabbitMQAnswersOverTLSAlone(t *testing.T) {
	t.Parallel()
	r := RequireRabbitMQ(t, RabbitMQOptions{TLS: true})
	if err := greets(t.Context(), r.Addr(), r.TLS()); err != nil {
		t.Errorf("over TLS: %v", err)
	}
	if checkGreets(t, r.Addr()) == nil {
		t.Error("it answers in the clear")
	}
}

func TestRabbitMQClusterComesTogetherAgain(t *testing.T) {
	t.Parallel()
	if os.Getenv("BACKSTAGE_SOAK") == "" {
		t.Skip("three nodes that start at once are too much beside other tests: BACKSTAGE_SOAK=1")
	}
	c := RequireRabbitMQCluster(t)
	victim := c.Nodes()[1]
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	if checkGreets(t, victim.Addr()) == nil {
		t.Error("a node that was killed answers")
	}
	if err := victim.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Settled(t.Context()); err != nil {
		t.Error(err)
	}
}
