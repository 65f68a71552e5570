// Package server is the Redis of one measurement: on a port and in a folder of its
// own, with the persistence that most who keep jobs in Redis have.
package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/internal/brokers"

	"github.com/backstage-go/backstage/bench/internal/measure"
)

// Server is a running Redis.
type Server struct {
	*brokers.Redis
	client *redis.Client
}

// With calls measure with a Redis that it starts and takes down again: appendonly,
// fsync every second, no snapshots. Its files are where temporary files are ($TMPDIR).
func With(measure func(context.Context, *Server) error) error {
	ctx := context.Background()
	started, err := brokers.StartRedis(ctx, brokers.RedisOptions{})
	if err != nil {
		return err
	}
	s := Of(started)
	return errors.Join(measure(ctx, s), s.Close())
}

// Of returns a server that a test has started.
func Of(started *brokers.Redis) *Server {
	s := &Server{Redis: started}
	s.client = redis.NewClient(s.Options())
	return s
}

// Close stops it and removes its files.
func (s *Server) Close() error {
	return errors.Join(s.client.Close(), s.Redis.Close())
}

// URL returns the address by which a provider is opened.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Options returns what a go-redis client needs to connect. Nothing is sent twice:
// what is measured must not hide a command that failed.
func (s *Server) Options() *redis.Options {
	return &redis.Options{Addr: s.Addr(), MaxRetries: -1}
}

// Client returns a client for looking at the server. It is closed with it.
func (s *Server) Client() *redis.Client { return s.client }

// rewriting is how long the rewrite of an empty log may take.
const rewriting = 30 * time.Second

// Clear deletes everything and rewrites the log of changes, so that a run starts
// with an empty one and no earlier run's rewrite falls into it.
func (s *Server) Clear(ctx context.Context) error {
	if err := s.client.FlushAll(ctx).Err(); err != nil {
		return err
	}
	if err := s.rewritten(ctx); err != nil { // one that began by itself
		return err
	}
	if err := s.client.BgRewriteAOF(ctx).Err(); err != nil {
		return err
	}
	return s.rewritten(ctx)
}

func (s *Server) rewritten(ctx context.Context) error {
	for end := time.Now().Add(rewriting); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		info, err := s.Info(ctx, "persistence")
		if err != nil {
			return err
		}
		if info["aof_rewrite_in_progress"] == "0" && info["aof_rewrite_scheduled"] == "0" {
			return nil
		}
	}
	return errors.New("the rewrite of the append-only file does not end")
}

// Describe says what is measured, and on what: machine, versions, how Redis persists,
// and the command.
func (s *Server) Describe(ctx context.Context) (string, error) {
	info, err := s.Info(ctx, "server")
	if err != nil {
		return "", err
	}
	config, err := s.client.ConfigGet(ctx, "append*").Result()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s\nRedis %s, appendonly %s, appendfsync %s%s\n%s %s", measure.Machine(),
		info["redis_version"], config["appendonly"], config["appendfsync"], versions(),
		filepath.Base(os.Args[0]), strings.Join(os.Args[1:], " ")), nil
}

// versions names the clients, where the program was built with what it needs to know.
func versions() string {
	var all strings.Builder
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "github.com/redis/go-redis/v9" || dep.Path == "github.com/hibiken/asynq" {
				fmt.Fprintf(&all, ", %s %s", dep.Path, dep.Version)
			}
		}
	}
	return all.String()
}

// Number returns a number of a section of INFO.
func (s *Server) Number(ctx context.Context, section, field string) (int64, error) {
	info, err := s.Info(ctx, section)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(info[field], 10, 64)
}
