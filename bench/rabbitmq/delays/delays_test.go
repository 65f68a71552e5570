package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"

	"github.com/backstage-go/backstage/bench/rabbitmq/internal/server"
)

func TestEveryDelayIsMeasured(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := plan{
		each: 1, slots: 20, out: &out,
		server: &server.Server{RabbitMQ: brokers.RequireRabbitMQ(t, brokers.RabbitMQOptions{})},
		redis:  brokers.RequireRedis(t, brokers.RedisOptions{}),
	}
	if err := p.read("500ms", "50"); err != nil {
		t.Fatal(err)
	}
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ladder, single jobs of 500ms: ", "ladder, 50 at once", "lent, single jobs of 500ms: ", "lent, 50 at once"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no line with %q in:\n%s", want, out.String())
		}
	}
}
