package main

import (
	"io"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"

	"github.com/backstage-go/backstage/bench/redis/internal/server"
)

func TestABacklogIsSeenInMemoryAndLeavesIt(t *testing.T) {
	t.Parallel()
	p := plan{
		jobs: 20_000, slots: 20, out: io.Discard,
		server: server.Of(brokers.RequireRedis(t, brokers.RedisOptions{})),
	}
	r, err := p.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if full := r.full - r.before; full < int64(p.jobs)*50 || r.left() > full/2 {
		t.Errorf("the backlog took %d bytes, and %d were left after it", full, r.left())
	}
}
