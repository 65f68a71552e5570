package rabbitmq

import (
	"context"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// admin is the connection for what is neither publishing nor consuming: under an
// alarm a declaration on a connection that publishes would hang with it.
type admin struct {
	link *link
	work sync.WaitGroup
}

// do runs f on a channel of its own, at most until ctx ends: the client's calls know
// no context. What f has begun then may still happen, so f leaves nothing behind that
// the caller reads.
func (a *admin) do(ctx context.Context, f func(ch *amqp.Channel) error) error {
	_, err := inquire(ctx, a, func(ch *amqp.Channel) (struct{}, error) { return struct{}{}, f(ch) })
	return err
}

// mostLosses is how often something is tried that loses its connection: a broker that
// is busy closes one for an internal error.
const mostLosses = 5

// inquire is do with an answer. Whatever is asked or done here may be done twice.
func inquire[T any](ctx context.Context, a *admin, f func(ch *amqp.Channel) (T, error)) (T, error) {
	for wait, try := firstWait, 1; ; wait, try = 2*wait, try+1 {
		conn, err := a.link.up(ctx)
		if err != nil {
			var none T
			return none, err
		}
		value, err := inquireOn(ctx, a, conn, f)
		if err == nil || !conn.over() || try == mostLosses || !sleep(ctx, wait) {
			return value, err
		}
	}
}

// inquireOn does so on one connection.
func inquireOn[T any](ctx context.Context, a *admin, conn *connection, f func(ch *amqp.Channel) (T, error)) (T, error) {
	var none T
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	a.work.Go(func() {
		ch, err := conn.Channel()
		if err != nil {
			done <- answer{none, err}
			return
		}
		value, err := f(ch)
		done <- answer{value, err}
		_ = ch.Close()
	})
	select {
	case got := <-done:
		return got.value, got.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// exists reports whether a queue is there, and how many messages wait in it.
func (a *admin) exists(ctx context.Context, queue string) (bool, int, error) {
	q, err := inquire(ctx, a, func(ch *amqp.Channel) (amqp.Queue, error) {
		return ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	})
	if codeOf(err) == amqp.NotFound {
		return false, 0, nil
	}
	return err == nil, q.Messages, explained(err)
}

// ping returns nil if the broker answers.
func (a *admin) ping(ctx context.Context) error {
	return a.do(ctx, func(ch *amqp.Channel) error { return ch.Qos(1, 0, false) })
}
