package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"

	"github.com/backstage-go/backstage/bench/rabbitmq/internal/server"
)

func TestEveryJobIsMeasured(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := plan{
		rate: 200, jobs: 40, slots: 10, out: &out,
		server: &server.Server{RabbitMQ: brokers.RequireRabbitMQ(t, brokers.RabbitMQOptions{})},
	}
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), " ms of 40"); n != 2 {
		t.Errorf("%d sides were measured, want 2:\n%s", n, out.String())
	}
}
