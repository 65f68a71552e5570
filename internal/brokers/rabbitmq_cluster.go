package brokers

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
)

// RabbitMQCluster is a RabbitMQ cluster of a test's own: three nodes, so that a quorum
// queue has a replica on each.
type RabbitMQCluster struct {
	nodes []*RabbitMQ
}

// Nodes returns the nodes, to kill or pause them.
func (c *RabbitMQCluster) Nodes() []*RabbitMQ { return c.nodes }

// Close kills the nodes and removes their folders. Closing twice is fine. Tests need not
// call it.
func (c *RabbitMQCluster) Close() error { return c.nodes[0].on.close() }

// Settled waits until every node says that all nodes are running: after a node was started
// again, for example.
func (c *RabbitMQCluster) Settled(ctx context.Context) error {
	return until(ctx, starting, func(ctx context.Context) error {
		for _, n := range c.nodes {
			if err := n.knows(ctx, len(c.nodes)); err != nil {
				return err
			}
		}
		return nil
	})
}

// knows returns nil if a node says that so many nodes are running.
func (r *RabbitMQ) knows(ctx context.Context, count int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Management()+"/api/nodes", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var nodes []struct{ Running bool }
	if err := json.NewDecoder(response.Body).Decode(&nodes); err != nil {
		return fmt.Errorf("the nodes that %s knows: %w", r.spec.name, err)
	}
	running := 0
	for _, n := range nodes {
		if n.Running {
			running++
		}
	}
	if running != count {
		return fmt.Errorf("%s knows of %d nodes that are running, not %d", r.spec.name, running, count)
	}
	return nil
}

// nodePorts is how many ports apart the nodes of a cluster are. The third port of the
// first one is epmd's.
const nodePorts = 3

// startRabbitMQCluster starts the nodes in a site of their own, all at once, so that they
// find each other.
func startRabbitMQCluster(ctx context.Context, p program) (*RabbitMQCluster, error) {
	const count = 3
	s, on, err := p.open(nodePorts * count)
	if err != nil {
		return nil, err
	}
	opts := RabbitMQOptions{cookie: rand.Text(), Conf: []string{"cluster_formation.peer_discovery_backend = classic_config"}}
	for i := range count {
		opts.Conf = append(opts.Conf, fmt.Sprintf("cluster_formation.classic_config.nodes.%d = %s", i+1, rabbitMQNode(s.port(nodePorts*i))))
	}
	c := new(RabbitMQCluster)
	for i := range count {
		c.nodes = append(c.nodes, &RabbitMQ{Server: &Server{spec: rabbitMQSpec(p, s, nodePorts*i, opts, nil), on: on}, program: p})
	}
	if p.image == "" { // in a container the nodes start their own
		err = (&Server{spec: epmdSpec(s.port(2)), on: on}).start(ctx)
	}
	if err == nil {
		err = c.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, on.close())
	}
	return c, nil
}

func (c *RabbitMQCluster) start(ctx context.Context) error {
	errs := make([]error, len(c.nodes))
	var group sync.WaitGroup
	for i, n := range c.nodes {
		group.Go(func() { errs[i] = n.start(ctx) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.Settled(ctx)
}

// RequireRabbitMQCluster starts a RabbitMQ cluster of three nodes for this test alone, and
// takes it down when the test ends. It skips the test if brokers are not required, and
// fails it if there is no cluster to be had.
func RequireRabbitMQCluster(t testing.TB) *RabbitMQCluster {
	t.Helper()
	p := requireProgram(t, rabbitMQRecipe())
	c, err := startRabbitMQCluster(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range c.nodes {
				t.Logf("%s on port %d said:\n%s", n.spec.name, n.spec.port, n.Log())
			}
		}
		if err := c.Close(); err != nil {
			t.Errorf("take the brokers down: %v", err)
		}
	})
	return c
}
