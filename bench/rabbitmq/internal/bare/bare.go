// Package bare is a job queue on RabbitMQ as one writes it by hand for one program: a
// quorum queue, one channel to publish, one to consume, a number of goroutines. There
// are no ids, keys, delays, attempts or dead letters, jobs that find no queue vanish,
// and nothing comes back after an outage.
//
// It is written to be fast, over the client that the provider uses. Every producer
// waits for its own confirm, with as many on their way as there are producers;
// acknowledgements of what ended at the same moment are sent together, and nobody
// waits for them.
package bare

import (
	"context"
	"errors"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Name is the queue's.
const Name = "bare"

// window is how many messages of a batch are not confirmed.
const window = 1000

// Queue is the queue, and the connections to it.
type Queue struct {
	publishing, consuming *amqp.Connection
	out                   *amqp.Channel
}

// Open connects to a server, and declares the queue.
func Open(url string) (*Queue, error) {
	q := new(Queue)
	var err error
	if q.publishing, err = amqp.Dial(url); err != nil {
		return nil, err
	}
	if q.consuming, err = amqp.Dial(url); err == nil {
		err = q.declare()
	}
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

func (q *Queue) declare() (err error) {
	if q.out, err = q.publishing.Channel(); err != nil {
		return err
	}
	if err := q.out.Confirm(false); err != nil {
		return err
	}
	_, err = q.out.QueueDeclare(Name, true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	return err
}

// Close closes the connections.
func (q *Queue) Close() error {
	var errs []error
	for _, c := range []*amqp.Connection{q.publishing, q.consuming} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

var errNotStored = errors.New("a job was not confirmed")

func (q *Queue) send(body []byte) (*amqp.DeferredConfirmation, error) {
	return q.out.PublishWithDeferredConfirm("", Name, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body})
}

// Enqueue returns when the server has confirmed the job.
func (q *Queue) Enqueue(body []byte) error {
	confirm, err := q.send(body)
	if err == nil && !confirm.Wait() {
		err = errNotStored
	}
	return err
}

// Batch returns when the server has confirmed all jobs.
func (q *Queue) Batch(bodies [][]byte) error {
	var confirms []*amqp.DeferredConfirmation
	for _, body := range bodies {
		if n := len(confirms); n >= window && !confirms[n-window].Wait() {
			return errNotStored
		}
		confirm, err := q.send(body)
		if err != nil {
			return err
		}
		confirms = append(confirms, confirm)
	}
	for _, confirm := range confirms[max(0, len(confirms)-window):] {
		if !confirm.Wait() {
			return errNotStored
		}
	}
	return nil
}

// Start consumes with a number of workers until stop is called, which returns when all
// that was received is handled and acknowledged.
func (q *Queue) Start(workers int, handle func(body []byte)) (stop func() error, err error) {
	ch, err := q.consuming.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Qos(workers, 0, false); err != nil {
		return nil, err
	}
	const tag = "bare"
	deliveries, err := ch.Consume(Name, tag, false, false, false, false, nil)
	if err != nil {
		return nil, err
	}
	done := make(chan uint64, workers)
	var pool sync.WaitGroup
	for range workers {
		pool.Go(func() {
			for d := range deliveries {
				handle(d.Body)
				done <- d.DeliveryTag
			}
		})
	}
	acked := make(chan error, 1)
	go func() { acked <- acknowledge(ch, done) }()
	return sync.OnceValue(func() error {
		err := ch.Cancel(tag, false)
		pool.Wait()
		close(done)
		return errors.Join(err, <-acked, ch.Close())
	}), nil
}

// Left returns how many jobs wait in the queue.
func (q *Queue) Left(context.Context) (int, error) {
	state, err := q.out.QueueDeclarePassive(Name, true, false, false, false, nil)
	return state.Messages, err
}
