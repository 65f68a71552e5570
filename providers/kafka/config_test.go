package kafka

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/sasl/plain"

	"github.com/backstage-go/backstage/runtime/provider"
)

func TestTheZeroConfigIsTheUsualOne(t *testing.T) {
	t.Parallel()
	c, err := Config{}.checked()
	if err != nil {
		t.Fatal(err)
	}
	if c.Brokers[0] != "localhost:9092" || c.Prefix != "backstage" || c.Group != "backstage" || c.Partitions != 3 ||
		c.Replication != 3 || c.inSync() != 2 || c.MaxRecord != 2<<20 || c.Timeout != 10*time.Second || c.SASL != nil {
		t.Errorf("defaults are %+v", c)
	}
	if c, err = (Config{Replication: 1, Partitions: 1, Prefix: "shop"}).checked(); err != nil || c.inSync() != 1 || c.Partitions != 1 || c.Group != "shop" {
		t.Errorf("for a single broker: %+v, %v", c, err)
	}
	for _, mechanism := range []string{"", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		c, err := Config{User: "u", Password: "p", Mechanism: mechanism}.checked()
		if want := orElse(mechanism, "PLAIN"); err != nil || c.SASL.Name() != want {
			t.Errorf("mechanism %q: %v, %v", mechanism, c.SASL, err)
		}
	}
}

func TestSettingsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]Config{
		"is no address":             {Brokers: []string{"localhost"}},
		"the prefix":                {Prefix: "a b"},
		"Partitions is -1":          {Partitions: -1},
		"Replication is -1":         {Replication: -1},
		"MaxRecord is 5":            {MaxRecord: 5},
		"Timeout is":                {Timeout: 1},
		"no user":                   {Password: "secret"},
		"both set":                  {User: "u", SASL: plain.Mechanism{}},
		"mechanism \"X\" is not":    {User: "u", Password: "secret", Mechanism: "X"},
		"cannot be used with SCRAM": {User: "u", Password: "secret\x00", Mechanism: "SCRAM-SHA-256"},
	} {
		_, err := Open(t.Context(), c)
		var setup *provider.SetupError
		if !errors.As(err, &setup) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want a SetupError that says %q", c, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestAClusterThatIsNotThereIsAnErrorSoon(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	listener.Close()
	var known *Error
	_, err = Open(t.Context(), Config{Brokers: []string{nobody}})
	if !errors.As(err, &known) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("err = %v, want an *Error that says connection refused", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err = Open(ctx, Config{Brokers: []string{silent.Addr().String()}}); !errors.As(err, &known) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("err = %v, want an *Error that says it does not answer", err)
	}
}

func TestMoreCopiesThanBrokersAreRefused(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Replication = 2
	s, _ := c.open()
	stored := s.Publish(t.Context(), someJobs(1, "q"), provider.PublishOptions{})
	if stored[0].Outcome != provider.OutcomeRefused || !strings.Contains(stored[0].Err.Error(), "lower Replication") {
		t.Errorf("%s, %v; want refused, with the remedy", stored[0].Outcome, stored[0].Err)
	}
}
