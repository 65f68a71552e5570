package brokers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	clusterNodes = 3
	clusterSlots = 16384
)

// RedisCluster is a Redis cluster of a test's own: three masters with a third of the
// slots each, and no replicas.
type RedisCluster struct {
	nodes []*Redis
}

// Addrs returns the host:port of each node.
func (c *RedisCluster) Addrs() []string {
	var all []string
	for _, n := range c.nodes {
		all = append(all, n.Addr())
	}
	return all
}

// Nodes returns the nodes, to kill or pause them. While one is down, the others refuse
// all commands, because not every slot is served.
func (c *RedisCluster) Nodes() []*Redis { return c.nodes }

// Close kills the nodes and removes their folders. Closing twice is fine. Tests need
// not call it.
func (c *RedisCluster) Close() error { return c.nodes[0].on.close() }

// Settled waits until every node says that the cluster is well and knows all the others:
// after a node was started again, for example.
func (c *RedisCluster) Settled(ctx context.Context) error {
	for _, n := range c.nodes {
		if err := until(ctx, starting, n.inCluster); err != nil {
			return fmt.Errorf("%s on %s: %w", n.spec.name, n.Addr(), err)
		}
	}
	return nil
}

func (r *Redis) inCluster(ctx context.Context) error {
	info, err := r.do(ctx, "CLUSTER", "INFO")
	if err != nil {
		return err
	}
	for _, want := range []string{"cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d", clusterNodes), fmt.Sprintf("cluster_slots_ok:%d", clusterSlots)} {
		if !strings.Contains(info, want) {
			return fmt.Errorf("%s is awaited: %s", want, strings.Join(strings.Fields(info), " "))
		}
	}
	return nil
}

// startRedisCluster starts the nodes and makes them a cluster.
func startRedisCluster(ctx context.Context, p program) (*RedisCluster, error) {
	s, on, err := p.open(clusterNodes)
	if err != nil {
		return nil, err
	}
	c := &RedisCluster{}
	if err := c.start(ctx, p, s, on); err != nil {
		return nil, errors.Join(err, on.close())
	}
	return c, nil
}

func (c *RedisCluster) start(ctx context.Context, p program, s *site, on runner) error {
	for i := range clusterNodes {
		n, err := newRedis(p, on, fmt.Sprintf("node%d", i+1), s.port(i), RedisOptions{Args: []string{
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "2000",
			// A container has addresses of its own, which nobody else can reach.
			"--cluster-announce-ip", "127.0.0.1",
		}})
		if err != nil {
			return err
		}
		if err := n.start(ctx); err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
	}
	for i, n := range c.nodes {
		first, last := i*clusterSlots/clusterNodes, (i+1)*clusterSlots/clusterNodes-1
		for _, command := range [][]string{
			{"CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)},
			{"CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i + 1)},
			// The first one meets itself, which changes nothing.
			{"CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(c.nodes[0].spec.port)},
		} {
			if _, err := n.do(ctx, command...); err != nil {
				return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
			}
		}
	}
	return c.Settled(ctx)
}
