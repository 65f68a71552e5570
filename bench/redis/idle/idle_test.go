package main

import (
	"io"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"

	"github.com/backstage-go/backstage/bench/redis/internal/server"
)

func TestAnIdleWorkerIsHeard(t *testing.T) {
	t.Parallel()
	p := plan{
		lanes: []int{1, 5}, slots: 10, pre: 500 * time.Millisecond, span: 3 * time.Second, out: io.Discard,
		server: server.Of(brokers.RequireRedis(t, brokers.RedisOptions{})),
	}
	rates, err := p.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, rate := range rates {
		if rate == 0 {
			t.Errorf("%d lanes: no command was counted", p.lanes[i])
		}
	}
}
