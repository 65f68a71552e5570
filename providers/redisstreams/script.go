package redisstreams

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// sources are the scripts, and the parts that several of them begin with.
//
//go:embed lua/*.lua
var sources embed.FS

// scripts are all that is done in more than one step of Redis. Scripts, and not
// functions, because those would have to be installed on every node by somebody
// else.
type scripts struct {
	add, put, ack, settle, read, extend, open, leave script
	strays, adopt, ended, enlist                     script
	due, promote, reserve, conclude, cancel          script
	claim, release, stats, replay, discard, bury     script
}

// script is one of them.
type script struct {
	name string
	of   *redis.Script
}

// Some scripts may use memory that Redis does not have: those that end or keep what
// was accepted before. A settlement that is refused would be repeated by everyone
// who runs the job again.
const (
	refusedWhenFull = "#!lua\n"
	doneWhenFull    = "#!lua flags=allow-oom\n"
)

func newScripts() (scripts, error) {
	var all scripts
	for _, s := range []struct {
		to    *script
		name  string
		head  string
		parts []string
	}{
		{&all.add, "add", refusedWhenFull, nil},
		{&all.put, "put", refusedWhenFull, []string{"arguments", "clock", "claims", "held", "store"}},
		{&all.ack, "ack", doneWhenFull, []string{"arguments", "fence"}},
		{&all.settle, "settle", doneWhenFull, []string{"arguments", "clock", "claims", "held", "store", "letters", "fence"}},
		{&all.read, "read", doneWhenFull, []string{"arguments", "clock", "groups", "info"}},
		{&all.extend, "extend", doneWhenFull, []string{"arguments", "fence"}},
		{&all.open, "open", doneWhenFull, []string{"arguments", "groups"}},
		{&all.leave, "leave", doneWhenFull, nil},
		{&all.strays, "strays", doneWhenFull, nil},
		{&all.adopt, "adopt", doneWhenFull, []string{"arguments"}},
		{&all.ended, "ended", doneWhenFull, []string{"arguments", "fence"}},
		{&all.enlist, "enlist", doneWhenFull, nil},
		{&all.due, "due", doneWhenFull, []string{"clock"}},
		{&all.promote, "promote", doneWhenFull, []string{"arguments", "clock", "held"}},
		{&all.reserve, "reserve", doneWhenFull, []string{"arguments", "clock", "held"}},
		{&all.conclude, "conclude", doneWhenFull, []string{"arguments", "clock", "held"}},
		{&all.cancel, "cancel", doneWhenFull, []string{"arguments", "clock", "claims", "held"}},
		{&all.claim, "claim", refusedWhenFull, []string{"arguments", "claims"}},
		{&all.release, "release", doneWhenFull, []string{"claims"}},
		{&all.stats, "stats", doneWhenFull, []string{"clock", "info"}},
		{&all.replay, "replay", refusedWhenFull, []string{"arguments", "claims"}},
		{&all.discard, "discard", doneWhenFull, nil},
		{&all.bury, "bury", doneWhenFull, []string{"clock", "letters"}},
	} {
		text := s.head
		for _, part := range append(s.parts, s.name) {
			b, err := sources.ReadFile("lua/" + part + ".lua")
			if err != nil {
				return all, fmt.Errorf("redis script %s: %w", s.name, err)
			}
			text += string(b)
		}
		*s.to = script{s.name, redis.NewScript(text)}
	}
	return all, nil
}

// on runs a script on one server.
func (s *script) on(ctx context.Context, server redis.Scripter, keys []string, args []any) ([]any, error) {
	reply, err := s.of.Run(ctx, server, keys, args...).Result()
	if err != nil {
		return nil, err
	}
	list, _ := reply.([]any)
	return list, nil
}

// run runs a script on the server that has its keys, which are never none.
func (l *link) run(ctx context.Context, s *script, keys []string, args ...any) (reply []any, err error) {
	l.point(s.name + " begins")
	err = l.to(ctx, keys[0], func(server *redis.Client) error {
		reply, err = s.on(ctx, server, keys, args)
		return err
	})
	if err == nil {
		l.point(s.name + " is done")
	}
	return reply, err
}

// replicas is how many replicas must have what a script wrote, and how long they
// are waited for.
type replicas struct {
	least int
	wait  time.Duration
}

// tooFewError says that fewer replicas than wanted have what was written: the
// master has it, and may lose it.
type tooFewError struct{ have, want int }

func (e *tooFewError) Error() string {
	return fmt.Sprintf("redis: %d of %d replicas have it, so that a failover may lose it", e.have, e.want)
}

// runSafely is run, and waits until enough replicas have what was written. The
// script's reply is valid with a *tooFewError, too.
func (l *link) runSafely(ctx context.Context, r replicas, s *script, keys []string, args ...any) ([]any, error) {
	if r.least == 0 {
		return l.run(ctx, s, keys, args...)
	}
	l.point(s.name + " begins")
	var reply []any
	have := 0
	err := l.to(ctx, keys[0], func(server *redis.Client) error {
		// WAIT is about what the same connection wrote before.
		conn := server.WithTimeout(l.source.timeout + r.wait).Conn()
		defer conn.Close()
		var err error
		if reply, err = s.on(ctx, conn, keys, args); err != nil {
			return err
		}
		n, err := conn.Wait(ctx, r.least, r.wait).Result()
		have = int(n)
		if broken(err) {
			return err
		}
		return nil // what refuses to wait has written all the same
	})
	if err == nil {
		l.point(s.name + " is done")
		if have < r.least {
			err = &tooFewError{have, r.least}
		}
	}
	return reply, err
}
