package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"

	"github.com/backstage-go/backstage/bench/rabbitmq/internal/server"
)

// TestMain lets the test binary be the worker's process, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-worker" {
		main()
		return
	}
	flag.Parse()
	os.Exit(m.Run())
}

func TestEveryFaultEndsInASecondRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := plan{
		times: 1, jobs: 3, lease: 3 * time.Second, out: &out,
		server: &server.Server{RabbitMQ: brokers.RequireRabbitMQ(t, brokers.RabbitMQOptions{})},
	}
	if err := p.run(t.Context(), faults()); err != nil {
		t.Fatal(err)
	}
	for _, name := range faultNames() {
		if !strings.Contains(out.String(), name+": ") {
			t.Errorf("no line for %s in:\n%s", name, out.String())
		}
	}
}
