package rabbitmq

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// tryReturn makes sure that a job which comes back is not destroyed, by giving one
// back. A broker that reads the delivery limit otherwise than we do, or a policy that
// allows none, would lose jobs whenever a worker dies. It is tried once.
func (s *store) tryReturn(ctx context.Context) error {
	s.mu.Lock()
	tried := s.tried || s.cfg.Passive // which may not declare a queue to try it on
	s.mu.Unlock()
	if tried {
		return nil
	}
	queue := s.names.probe(rand.Text())
	err := s.admin.do(ctx, func(ch *amqp.Channel) error { return s.lend(ctx, ch, queue) })
	if err == nil {
		// That channel has ended with the message, as a worker's does that dies.
		err = s.admin.do(ctx, func(ch *amqp.Channel) error {
			defer func() { _, _ = ch.QueueDelete(queue, false, false, false) }()
			d, err := take(ctx, ch, queue)
			if err != nil {
				return err
			}
			return d.Ack(false)
		})
	}
	if err != nil {
		return explained(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = true
	return nil
}

// lend publishes a message to a queue of its own, and takes it.
func (s *store) lend(ctx context.Context, ch *amqp.Channel, queue string) error {
	args := queueArguments()
	args["x-expires"] = time.Minute.Milliseconds() // should this process die
	if _, err := ch.QueueDeclare(queue, true, false, false, false, args); err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	for {
		confirm, err := ch.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{DeliveryMode: amqp.Persistent})
		if err != nil {
			return err
		}
		if stored, err := confirm.WaitContext(ctx); stored {
			break
		} else if err != nil || ch.IsClosed() {
			return fmt.Errorf("a return is tried: %w", amqp.ErrClosed)
		}
		if !sleep(ctx, firstTry) { // the queue has no leader yet
			return ctx.Err()
		}
	}
	_, err := take(ctx, ch, queue)
	return err
}

// returning is how long a message may take to come back.
const returning = 5 * time.Second

func take(ctx context.Context, ch *amqp.Channel, queue string) (amqp.Delivery, error) {
	for deadline := time.Now().Add(returning); time.Now().Before(deadline); {
		d, there, err := ch.Get(queue, false)
		if err != nil || there {
			return d, err
		}
		if !sleep(ctx, firstTry/4) {
			return amqp.Delivery{}, ctx.Err()
		}
	}
	return amqp.Delivery{}, setupError("a message that was given back to a queue is gone: the broker destroys jobs of workers that die",
		"look for a policy with a delivery-limit on queues of this prefix, and remove it")
}
