package redisstreams

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// wire is a connection of its own, for calls that block: no other call waits behind
// them, and their server knows them by the connection's id. It is for one goroutine
// at a time.
type wire struct {
	link   *link
	key    string        // of the server to connect to
	answer time.Duration // how long an answer may take

	client *redis.Client
	conn   *redis.Conn
	id     int64 // of the connection, at the server; 0 if it does not tell
	came   bytes.Buffer
}

// lingering is how long a call may go on after its context has ended, before its
// connection is given up.
const lingering = 500 * time.Millisecond

// open connects, if there is no connection.
func (w *wire) open(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	server, err := w.link.server(ctx, w.key)
	if err != nil {
		return err
	}
	client := redis.NewClient(w.link.source.alone(*server.Options(), w.answer))
	conn := client.Conn()
	id, err := conn.ClientID(ctx).Result()
	var said redis.Error
	if err != nil && !errors.As(err, &said) {
		return errors.Join(err, conn.Close(), client.Close())
	}
	w.client, w.conn, w.id = client, conn, id
	return nil
}

// shut gives the connection up.
func (w *wire) shut() {
	if w.conn == nil {
		return
	}
	_ = w.conn.Close()
	_ = w.client.Close()
	w.client, w.conn = nil, nil
}

// use makes one call, which blocks for no longer than answer. When ctx ends a call
// that blocks is told to return; what does not return soon after is cut off, and
// what it took is found later, as a stray.
func (w *wire) use(ctx context.Context, blocks bool, do func(ctx context.Context, conn *redis.Conn) error) error {
	err := w.open(ctx)
	if err == nil {
		err = w.interruptible(ctx, blocks, do)
	}
	w.link.report(ctx, err)
	if r, known := refusalOf(err); broken(err) || known && r.moved {
		w.shut()
	}
	return why(ctx, err)
}

// fetch sends a command and returns its answer, nil if there is none. The next one
// comes to the same place.
func (w *wire) fetch(ctx context.Context, conn *redis.Conn, args []any) (*rawReply, error) {
	if w.came.Cap() > mostBytes {
		w.came = bytes.Buffer{} // it is not always that much
	}
	w.came.Reset()
	err := conn.Process(ctx, redis.NewRawWriteToCmd(ctx, &w.came, args...))
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return rawReplyOf(w.came.Bytes())
}

func (w *wire) interruptible(ctx context.Context, blocks bool, do func(ctx context.Context, conn *redis.Conn) error) error {
	over, stopped := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		w.interrupt(blocks, over)
	})
	err := do(context.WithoutCancel(ctx), w.conn)
	close(over)
	if !stop() {
		<-stopped
	}
	return err
}

// interrupt makes the call that is under way return.
func (w *wire) interrupt(blocks bool, over <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), lingering)
	defer cancel()
	for wait := time.Millisecond; blocks && w.id != 0; wait = min(2*wait, 50*time.Millisecond) {
		// It may not have begun to block yet.
		if server, err := w.link.server(ctx, w.key); err == nil && server.ClientUnblock(ctx, w.id).Val() == 1 {
			break
		}
		select {
		case <-over:
			return
		case <-ctx.Done():
		case <-time.After(wait):
		}
		if ctx.Err() != nil {
			break
		}
	}
	select {
	case <-over:
	case <-ctx.Done():
		_ = w.client.Close()
	}
}
