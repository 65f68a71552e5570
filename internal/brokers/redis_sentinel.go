package brokers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// sentinelName is what the sentinel calls the master that it watches.
const sentinelName = "backstage"

// RedisSentinel is a Redis master, a replica of it, and a sentinel that makes the
// replica the master when the master has been silent for half a second.
type RedisSentinel struct {
	servers  []*Redis // as they were started: the master, the replica
	sentinel *Redis
}

// Name is what clients ask the sentinel for.
func (s *RedisSentinel) Name() string { return sentinelName }

// Addr returns the host:port of the sentinel.
func (s *RedisSentinel) Addr() string { return s.sentinel.Addr() }

// Sentinel returns the sentinel itself, to kill or pause it.
func (s *RedisSentinel) Sentinel() *Server { return s.sentinel.Server }

// Servers returns the servers, the one that was started as the master first.
func (s *RedisSentinel) Servers() []*Redis { return s.servers }

// Master returns the server that the sentinel names, once that server says itself that
// it is a master. During a failover this takes a few seconds.
func (s *RedisSentinel) Master(ctx context.Context) (*Redis, error) {
	var master *Redis
	err := until(ctx, starting, func(ctx context.Context) error {
		master = nil
		answer, err := ask(ctx, s.Addr(), nil, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelName)
		if err != nil {
			return err
		}
		address, err := joined(answer)
		if err != nil {
			return err
		}
		for _, r := range s.servers {
			if r.Addr() == address {
				master = r
				return r.says(ctx, "role:master")
			}
		}
		return fmt.Errorf("the sentinel names %s, which is not here", address)
	})
	if err != nil {
		return nil, fmt.Errorf("wait for a master: %w", err)
	}
	return master, nil
}

// joined makes an address of what a sentinel answers: a host and a port.
func joined(answer any) (string, error) {
	if parts, ok := answer.([]any); ok && len(parts) == 2 {
		host, ok1 := parts[0].(string)
		port, ok2 := parts[1].(string)
		if ok1 && ok2 {
			return net.JoinHostPort(host, port), nil
		}
	}
	return "", fmt.Errorf("the sentinel answers %v, which is no address", answer)
}

// Promoted waits until the sentinel names another master than before, and returns it.
func (s *RedisSentinel) Promoted(ctx context.Context, before *Redis) (*Redis, error) {
	var now *Redis
	err := until(ctx, starting, func(ctx context.Context) error {
		var err error
		if now, err = s.Master(ctx); err == nil && now == before {
			err = errors.New("the sentinel still names the old one")
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("wait for a new master after %s: %w", before.Addr(), err)
	}
	return now, nil
}

// Close kills the servers and the sentinel and removes their folders. Closing twice is
// fine. Tests need not call it.
func (s *RedisSentinel) Close() error { return s.sentinel.on.close() }

// says returns nil if INFO replication has all these lines.
func (r *Redis) says(ctx context.Context, lines ...string) error {
	info, err := r.do(ctx, "INFO", "replication")
	if err != nil {
		return err
	}
	for _, line := range lines {
		if !strings.Contains(info, line+"\r\n") {
			return fmt.Errorf("%s is awaited: %s", line, strings.Join(strings.Fields(info), " "))
		}
	}
	return nil
}

func startRedisSentinel(ctx context.Context, p program) (*RedisSentinel, error) {
	at, on, err := p.open(3)
	if err != nil {
		return nil, err
	}
	s := &RedisSentinel{}
	if err := s.start(ctx, p, at, on); err != nil {
		return nil, errors.Join(err, on.close())
	}
	return s, nil
}

func (s *RedisSentinel) start(ctx context.Context, p program, at *site, on runner) error {
	master := strconv.Itoa(at.port(0))
	for i, name := range []string{"master", "replica"} {
		announced := []string{"--replica-announce-ip", "127.0.0.1", "--repl-diskless-sync-delay", "0"}
		if i > 0 {
			announced = append(announced, "--replicaof", "127.0.0.1 "+master)
		}
		r, err := newRedis(p, on, name, at.port(i), RedisOptions{Args: announced})
		if err != nil {
			return err
		}
		if err := r.start(ctx); err != nil {
			return err
		}
		s.servers = append(s.servers, r)
	}
	// A sentinel that finds the replica in its first look needs no second one, ten
	// seconds later.
	err := until(ctx, starting, func(ctx context.Context) error {
		return errors.Join(s.servers[0].says(ctx, "connected_slaves:1"), s.servers[1].says(ctx, "master_link_status:up"))
	})
	if err != nil {
		return fmt.Errorf("the replica does not follow: %w", err)
	}
	s.sentinel = newSentinel(p, on, at.port(2), master)
	return s.sentinel.start(ctx)
}

func newSentinel(p program, on runner, port int, master string) *Redis {
	const file = "sentinel.conf" // the sentinel keeps what it learns in it
	r := &Redis{Server: &Server{on: on, spec: &spec{name: "sentinel", port: port, files: map[string]string{
		file: strings.Join([]string{
			"sentinel monitor " + sentinelName + " 127.0.0.1 " + master + " 1",
			"sentinel down-after-milliseconds " + sentinelName + " 500",
			"sentinel failover-timeout " + sentinelName + " 3000",
			"sentinel announce-ip 127.0.0.1", "",
		}, "\n"),
	}}}}
	r.spec.command = func(at place) []string {
		return []string{p.path, file, "--sentinel", "--port", strconv.Itoa(port), "--bind", at.bind, "--protected-mode", "no"}
	}
	r.spec.ready = func(ctx context.Context) error {
		info, err := r.do(ctx, "INFO", "sentinel")
		if err != nil {
			return err
		}
		// After a failover this holds too: it is the old master that is the replica then.
		if !strings.Contains(info, "slaves=1") {
			return fmt.Errorf("the sentinel does not know the replica: %s", strings.Join(strings.Fields(info), " "))
		}
		return nil
	}
	return r
}
