package redisstreams

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// source makes clients of the provider's own, all with the settings of one that the
// user has or has described.
type source struct {
	root    redis.UniversalClient // asked for its settings, and for nothing else
	owned   bool                  // made here, and closed with the provider
	timeout time.Duration
}

func newSource(cfg Config) (*source, error) {
	s := &source{root: cfg.Client, timeout: cfg.Timeout}
	if s.root == nil {
		s.owned = true
		var err error
		if s.root, err = described(cfg); err != nil {
			return nil, err
		}
	}
	switch s.root.(type) {
	case *redis.Client, *redis.ClusterClient:
		return s, nil
	}
	return nil, setupError(fmt.Sprintf("a client of type %T does not tell its settings", s.root),
		"pass a *redis.Client or a *redis.ClusterClient, or Options or a URL")
}

// described makes a client that never sends anything: only its settings are wanted.
func described(cfg Config) (redis.UniversalClient, error) {
	if cfg.Options != nil {
		opts := *cfg.Options
		opts.MinIdleConns = 0 // or it would connect
		return redis.NewUniversalClient(&opts), nil
	}
	address := cfg.URL
	if address == "" {
		address = "redis://localhost:6379"
	}
	client, err := fromURL(address)
	if err != nil {
		return nil, setupError(strings.TrimPrefix(err.Error(), "redis: "), "write the URL as Config.URL says")
	}
	return client, nil
}

// fromURL knows which of go-redis' three forms of a URL is meant. A secret is never
// in an error.
func fromURL(address string) (redis.UniversalClient, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the URL cannot be read")
	}
	query := u.Query()
	switch {
	case query.Has("master_name"):
		opts, err := redis.ParseFailoverURL(address)
		if err != nil {
			return nil, err
		}
		opts.MinIdleConns = 0
		return redis.NewFailoverClient(opts), nil
	case query.Has("addr") || query.Has("cluster"):
		query.Del("cluster")
		u.RawQuery = query.Encode()
		opts, err := redis.ParseClusterURL(u.String())
		if err != nil {
			return nil, err
		}
		opts.MinIdleConns = 0
		return redis.NewClusterClient(opts), nil
	}
	opts, err := redis.ParseURL(address)
	if err != nil {
		return nil, err
	}
	opts.MinIdleConns = 0
	return redis.NewClient(opts), nil
}

// close closes what was made here.
func (s *source) close() error {
	if !s.owned {
		return nil
	}
	return s.root.Close()
}

// client makes a client.
func (s *source) client() redis.UniversalClient {
	if cluster, ok := s.root.(*redis.ClusterClient); ok {
		return redis.NewClusterClient(s.cluster(*cluster.Options()))
	}
	opts := *s.root.(*redis.Client).Options()
	return redis.NewClient(s.single(&opts, s.timeout))
}

// single changes settings to what we need. Replies have the shapes of RESP2. What
// may have been done is never sent a second time: who gave the order decides about
// that.
func (s *source) single(opts *redis.Options, answer time.Duration) *redis.Options {
	dial := opts.Dialer
	if dial == nil {
		dial = redis.NewDialer(opts)
	}
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, &unreachableError{err}
		}
		return conn, nil
	}
	opts.Protocol = 2
	opts.MaxRetries, opts.DialerRetries = -1, 1
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = s.timeout, answer, s.timeout
	opts.PoolTimeout = s.timeout
	opts.ContextTimeoutEnabled = true
	opts.MinIdleConns, opts.PipelinePoolSize = 0, -1
	opts.ClientSideCacheConfig, opts.ClientSideCache = nil, nil
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled} // they need RESP3
	return opts
}

// alone returns the settings of a client for one connection, with a time of its own
// for answers.
func (s *source) alone(opts redis.Options, answer time.Duration) *redis.Options {
	opts.PoolSize, opts.MaxActiveConns, opts.MaxIdleConns, opts.MaxConcurrentDials = 1, 0, 0, 0
	return s.single(&opts, answer)
}

// cluster does for a cluster what single does, and lets only masters answer.
func (s *source) cluster(opts redis.ClusterOptions) *redis.ClusterOptions {
	node := opts.NewClient
	if node == nil {
		node = redis.NewClient
	}
	opts.NewClient = func(o *redis.Options) *redis.Client { return node(s.single(o, s.timeout)) }
	opts.Protocol = 2
	opts.MaxRetries = -1
	opts.ReadOnly, opts.RouteByLatency, opts.RouteRandomly = false, false, false
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = s.timeout, s.timeout, s.timeout
	opts.ContextTimeoutEnabled = true
	return &opts
}

// unreachableError is an error of dialing: nothing was sent.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }
