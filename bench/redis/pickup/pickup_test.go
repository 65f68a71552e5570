package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"

	"github.com/backstage-go/backstage/bench/redis/internal/server"
)

func TestEveryJobAndEveryRetryIsMeasured(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := plan{
		rate: 200, jobs: 40, slots: 10, producers: 4, idle: 1, loaded: 5, out: &out,
		server: server.Of(brokers.RequireRedis(t, brokers.RedisOptions{})),
	}
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"backstage: ", "idle worker: ", "load of 4 producers: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no line with %q in:\n%s", want, out.String())
		}
	}
}
