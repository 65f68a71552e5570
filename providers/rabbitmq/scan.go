package rabbitmq

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// scan is one look through a queue. AMQP can only take messages: it takes all that
// are there when it begins, and what is not acknowledged goes back, in order, when it
// ends.
type scan struct {
	store *store
	queue string
	ch    *amqp.Channel
	taken int // messages that are to go back
	from  <-chan amqp.Delivery
	left  int
}

// scan looks through a queue that nobody else looks through meanwhile. Of a queue
// that does not exist it sees nothing.
func (s *store) scan(ctx context.Context, queue string, look func(sc *scan) error) error {
	there, _, err := s.admin.exists(ctx, queue)
	if err != nil || !there {
		return err
	}
	unlock, err := s.lock(ctx, queue)
	if err != nil {
		return err
	}
	defer unlock()
	_, n, err := s.admin.exists(ctx, queue)
	if err != nil || n == 0 {
		return err
	}
	sc := &scan{store: s, queue: queue, left: n}
	done := make(chan error, 1)
	within, cancel := context.WithCancel(ctx)
	s.admin.work.Go(func() { done <- sc.run(within, look) })
	select {
	case err = <-done:
	case <-ctx.Done():
		// What was begun ends soon, because it knows the context, or with the connection.
		err = <-done
	}
	cancel()
	sc.settle(context.WithoutCancel(ctx))
	return explained(err)
}

func (sc *scan) run(ctx context.Context, look func(sc *scan) error) error {
	conn, err := sc.store.admin.link.up(ctx)
	if err != nil {
		return err
	}
	if sc.ch, err = conn.Channel(); err != nil {
		return err
	}
	defer func() { _ = sc.ch.Close() }()
	sc.from, err = sc.ch.Consume(sc.queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	return look(sc)
}

// next returns the next message; false after the last.
func (sc *scan) next(ctx context.Context) (amqp.Delivery, bool, error) {
	if sc.left == 0 {
		return amqp.Delivery{}, false, nil
	}
	timer := time.NewTimer(returning)
	defer timer.Stop()
	select {
	case d, ok := <-sc.from:
		if !ok {
			return d, false, fmt.Errorf("look through %s: %w", sc.queue, amqp.ErrClosed)
		}
		sc.left--
		sc.taken++
		return d, true, nil
	case <-timer.C:
		return amqp.Delivery{}, false, nil // somebody took it by other means
	case <-ctx.Done():
		return amqp.Delivery{}, false, ctx.Err()
	}
}

// remove takes a message out for good, and returns when the broker has read it.
func (sc *scan) remove(ds ...amqp.Delivery) error {
	for _, d := range ds {
		if err := d.Ack(false); err != nil {
			return err
		}
		sc.taken--
	}
	return sc.ch.Qos(0, 0, false) // is answered after what was sent before
}

// settle waits until what was taken is back, so that the next one sees it. It is no
// matter of life and death: a broker that is slow makes the next look incomplete.
func (sc *scan) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, returning)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, firstWait) {
		_, n, err := sc.store.admin.exists(ctx, sc.queue)
		if err != nil || n >= sc.taken+sc.left || !sleep(ctx, wait) {
			return
		}
	}
}
