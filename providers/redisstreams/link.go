package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// link is how one opening reaches the servers. Its client is replaced when an
// answer does not come in time: the other connections of its pool lead to the same
// place, and each would have to time out by itself.
type link struct {
	source *source
	news   *news
	hook   func(point string)

	mu      sync.Mutex
	client  redis.UniversalClient
	renewed time.Time
	retired map[redis.UniversalClient]*time.Timer // what is under way on them may end
	closed  bool
}

func newLink(s *source, n *news, hook func(point string)) *link {
	return &link{source: s, news: n, hook: hook, client: s.client(), retired: make(map[redis.UniversalClient]*time.Timer)}
}

// close ends all connections. Closing twice is fine.
func (l *link) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	errs := []error{l.client.Close()}
	for old, timer := range l.retired {
		timer.Stop()
		errs = append(errs, old.Close())
	}
	return errors.Join(append(errs, l.source.close())...)
}

func (l *link) current() redis.UniversalClient {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client
}

// point is where a process may be killed, in this package's own tests.
func (l *link) point(name string) {
	if l.hook != nil {
		l.hook(name)
	}
}

// server returns the client of the server that has a key.
func (l *link) server(ctx context.Context, key string) (*redis.Client, error) {
	switch client := l.current().(type) {
	case *redis.ClusterClient:
		return client.MasterForKey(ctx, key)
	default:
		return client.(*redis.Client), nil
	}
}

// How often a command is sent to whoever has the keys by now, and how long after
// each refusal.
const (
	mostMoves = 5
	moveWait  = 50 * time.Millisecond
)

// to calls do with the server that has a key, and again when it had moved. do must
// be one command, or several that belong together.
func (l *link) to(ctx context.Context, key string, do func(server *redis.Client) error) error {
	for try := 1; ; try++ {
		server, err := l.server(ctx, key)
		if err == nil {
			err = do(server)
		}
		l.report(ctx, err)
		r, known := refusalOf(err)
		if !known || !r.moved || try == mostMoves || !sleep(ctx, time.Duration(try-1)*moveWait) {
			return why(ctx, err)
		}
	}
}

// why adds to an error what is known of it: that the caller's time was over, or what is
// wrong with the server.
func why(ctx context.Context, err error) error {
	if !broken(err) || !cutShort(ctx) {
		return explained(err)
	}
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("%w (%w)", ended, err)
	}
	return fmt.Errorf("%w (%w)", context.DeadlineExceeded, err)
}

// report learns from the outcome of a command, or of an attempt to connect. What
// the caller cut short says nothing.
func (l *link) report(ctx context.Context, err error) {
	if err != nil && cutShort(ctx) {
		return
	}
	if !broken(err) {
		l.news.reached()
	} else {
		l.news.lost(explained(err))
	}
	if r, known := refusalOf(err); known && r.moved || broken(err) {
		l.reroute()
	}
	if timedOut(err) {
		l.renew()
	}
}

// cutShort reports whether ctx has ended, or ends at this moment.
func cutShort(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// reroute lets a cluster's client learn anew who has which slots.
func (l *link) reroute() {
	if cluster, ok := l.current().(*redis.ClusterClient); ok {
		cluster.ReloadState(context.Background())
	}
}

// renew replaces the client. What is under way on the old one has the time that it
// would have had.
func (l *link) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || time.Since(l.renewed) < l.source.timeout {
		return
	}
	old := l.client
	l.client, l.renewed = l.source.client(), time.Now()
	l.retired[old] = time.AfterFunc(2*l.source.timeout, func() { l.retire(old) })
}

func (l *link) retire(old redis.UniversalClient) {
	l.mu.Lock()
	_, open := l.retired[old]
	open = open && !l.closed
	delete(l.retired, old)
	l.mu.Unlock()
	if open {
		_ = old.Close()
	}
}

func timedOut(err error) bool {
	if err == nil {
		return false
	}
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

// sleep waits, and reports whether ctx is still on.
func sleep(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
