package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"

	"github.com/backstage-go/backstage/bench/kafka/internal/server"
)

func TestEveryJobIsMeasured(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := plan{rate: 200, jobs: 40, slots: 10, out: &out}
	if err := p.run(t.Context(), server.Of(brokers.RequireKafka(t, brokers.KafkaOptions{}))); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), " ms of 40"); n != 3 {
		t.Errorf("%d sides were measured, want 3:\n%s", n, out.String())
	}
}
