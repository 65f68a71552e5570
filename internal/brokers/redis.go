package brokers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

func redisRecipe() recipe {
	return recipe{
		name: "Redis", variable: RedisAddress,
		remedy:    "install Redis 7.0 or newer, so that redis-server is in the PATH",
		installed: inPath("redis-server", "7.0"),
		packages:  []string{"redis-server"},
		image:     "redis:7.2", command: "redis-server",
		share: func(ctx context.Context, p program) (*Server, error) {
			r, err := startRedis(ctx, p, RedisOptions{})
			if err != nil {
				return nil, err
			}
			return r.Server, nil
		},
	}
}

// RedisOptions says what kind of Redis server a test wants. The zero value is one that
// writes an append-only file, syncs it every second, and has everything else as Redis
// has it.
type RedisOptions struct {
	// Args are further arguments of redis-server, such as "--maxmemory", "10mb". They
	// come last, so that they win.
	Args []string
	// TLS makes the server take encrypted connections and no others, with a certificate
	// for 127.0.0.1 and localhost that is made for it alone.
	TLS bool
}

// Redis is a Redis server of a test's own.
type Redis struct {
	*Server
	secure *tls.Config
}

// TLS returns what a client needs to trust the server; nil if its connections are not
// encrypted.
func (r *Redis) TLS() *tls.Config { return r.secure.Clone() }

// Close kills the server, and those that were started with it, and removes their folders.
// Closing twice is fine. Tests need not call it.
func (r *Redis) Close() error { return r.on.close() }

// ask sends the server one command.
func (r *Redis) ask(ctx context.Context, words ...string) (any, error) {
	return ask(ctx, r.Addr(), r.secure, words...)
}

// do sends the server one command that a text answers.
func (r *Redis) do(ctx context.Context, words ...string) (string, error) {
	return text(ctx, r.Addr(), r.secure, words...)
}

// StartRedis starts a Redis server for a program that is no test, such as one that
// measures. The program closes it; should it die before, the server ends as well. It
// does not install anything: a *MissingError says what to do.
func StartRedis(ctx context.Context, opts RedisOptions) (*Redis, error) {
	p, err := redisRecipe().find(ctx)
	if err != nil {
		return nil, err
	}
	return startRedis(ctx, p, opts)
}

// startRedis starts a server in a site of its own.
func startRedis(ctx context.Context, p program, opts RedisOptions) (*Redis, error) {
	s, on, err := p.open(1)
	if err != nil {
		return nil, err
	}
	r, err := newRedis(p, on, "redis", s.port(0), opts)
	if err == nil {
		err = r.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, on.close())
	}
	return r, nil
}

// newRedis describes a server, which is not started yet.
func newRedis(p program, on runner, name string, port int, opts RedisOptions) (*Redis, error) {
	r := &Redis{Server: &Server{spec: &spec{name: name, port: port, files: map[string]string{}}, on: on}}
	ports := []string{"--port", strconv.Itoa(port)}
	if opts.TLS {
		c, err := newCertificate()
		if err != nil {
			return nil, err
		}
		r.secure = c.client
		r.spec.files["redis.crt"], r.spec.files["redis.key"] = c.certificate, c.key
		ports = []string{"--port", "0", "--tls-port", strconv.Itoa(port),
			"--tls-cert-file", "redis.crt", "--tls-key-file", "redis.key", "--tls-ca-cert-file", "redis.crt", "--tls-auth-clients", "no"}
	}
	r.spec.command = func(at place) []string {
		words := []string{p.path, "--bind", at.bind, "--protected-mode", "no", "--dir", at.dir, "--daemonize", "no",
			"--appendonly", "yes", "--appendfsync", "everysec", "--save", ""}
		return append(append(words, ports...), opts.Args...)
	}
	r.spec.ready = r.answers
	return r, nil
}

// answers returns nil when the server has loaded its data. A server that wants to know
// first who asks is ready as well.
func (r *Redis) answers(ctx context.Context) error {
	_, err := r.do(ctx, "PING")
	var refused replyError
	if errors.As(err, &refused) && strings.HasPrefix(string(refused), "NOAUTH") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}
