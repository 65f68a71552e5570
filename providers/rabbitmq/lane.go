package rabbitmq

import (
	"context"
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// lane is a queue as one worker serves it: a channel with a consumer, and another one
// whenever that has ended.
type lane struct {
	sub      *subscription
	queue    string // "" for the rescue queue
	source   string // its name in the broker
	prefetch int
	take     func(l *lane, d *delivery, m *amqp.Delivery)

	ready []*delivery // not received yet; guarded by the subscription

	mu      sync.Mutex
	current *consumer
	err     error // why there is none
}

// errConsumer is why nothing is heard while a consumer is being made.
var errConsumer = errors.New("its consumer is being made")

// run consumes until the subscription is closed. When it has begun, or cannot, first is
// told; a broker that is busy may need several attempts.
func (l *lane) run(first chan<- error) {
	for wait := firstWait; ; {
		conn, err := l.sub.link.up(l.sub.closing)
		if err != nil {
			return
		}
		c, deliveries, err := l.consume(conn)
		l.set(c, err)
		if first != nil && (err == nil || final(err) || codeOf(err) == amqp.PreconditionFailed) {
			first <- err
			first = nil
		}
		if err == nil {
			wait = firstWait
			l.pump(c, deliveries)
			l.set(nil, c.why())
		} else if codeOf(err) == amqp.NotFound {
			l.set(nil, l.remake())
		}
		if !sleep(l.sub.closing, wait) {
			return
		}
		wait = min(2*wait, lastWait)
	}
}

func (l *lane) set(c *consumer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current, l.err = c, err
}

// remake declares the queue again, which somebody has deleted.
func (l *lane) remake() error {
	t := l.sub.store.topology
	t.forget(l.source)
	l.sub.store.news.emit(provider.Event{Kind: provider.GroupRecreated, Queue: l.queue, Message: "the queue " + l.source + " was deleted, and is declared again"})
	ctx, cancel := context.WithTimeout(l.sub.closing, l.sub.store.cfg.Timeout)
	defer cancel()
	if l.queue == "" {
		return t.plain(ctx, l.source)
	}
	return t.queue(ctx, l.queue)
}

// consume makes a consumer.
func (l *lane) consume(conn *connection) (*consumer, <-chan amqp.Delivery, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, nil, explained(err)
	}
	c := &consumer{lane: l, conn: conn, ch: ch, tag: l.sub.opts.Worker, lost: make(chan struct{}), drained: make(chan struct{})}
	c.acks.Flush = c.acknowledge
	c.ends = ch.NotifyClose(make(chan *amqp.Error, 1))
	c.cancels = ch.NotifyCancel(make(chan string, 1))
	err = ch.Qos(l.prefetch, 0, false)
	var deliveries <-chan amqp.Delivery
	if err == nil {
		deliveries, err = ch.Consume(l.source, c.consumerTag(), false, false, false, false, nil)
	}
	if err != nil {
		_ = ch.Close()
		return nil, nil, explained(err)
	}
	return c, deliveries, nil
}

// pump hands on what arrives, until the channel has ended.
func (l *lane) pump(c *consumer, deliveries <-chan amqp.Delivery) {
	for {
		select {
		case d, ok := <-deliveries:
			if !ok {
				deliveries = nil // cancelled: what is here may still be settled
				close(c.drained)
				continue
			}
			l.arrive(c, &d)
		case _, ok := <-c.cancels:
			if ok {
				// The queue is gone, or the broker has taken the jobs back: an
				// acknowledgement of one would be ignored without a word.
				c.end(errCancelled)
				l.sub.work.Go(func() { c.call(func() { _ = c.ch.Close() }) })
			}
			c.cancels = nil
		case err := <-c.ends:
			c.end(reason(err))
			if deliveries != nil {
				close(c.drained)
			}
			return
		}
	}
}

// errCancelled is why a consumer ended that the broker took away.
var errCancelled = errors.New("the broker has cancelled the consumer")

func reason(err *amqp.Error) error {
	if err == nil {
		return errEnded
	}
	return explained(err)
}

// arrive takes what has come.
func (l *lane) arrive(c *consumer, m *amqp.Delivery) {
	c.open.Add(1)
	d := &delivery{source: c, tag: m.DeliveryTag}
	var err error
	if d.job, err = provider.Unmarshal(m.Body); err != nil {
		l.sub.work.Go(func() { l.bury(d, m, err) })
		return
	}
	d.job.Counters.Crashes += returns(m)
	l.take(l, d, m)
}

// returns is how often a message came back: an upper bound of how often its worker
// died. RabbitMQ 4.3 counts one kind of return apart.
func returns(m *amqp.Delivery) int32 {
	n := max(number(m.Headers["x-delivery-count"]), number(m.Headers["x-acquired-count"]))
	if m.Redelivered {
		n = max(n, 1)
	}
	return int32(min(n, deliveryLimit))
}

// number reads a header, however many bytes the broker made of it.
func number(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	case int16:
		return int64(n)
	case int8:
		return int64(n)
	case uint8:
		return int64(n)
	case uint16:
		return int64(n)
	case uint32:
		return int64(n)
	}
	return 0
}

// cancel lets nothing more arrive, and returns when nothing does any more, or after a
// while. What it returns is closed when nothing of it runs.
func (l *lane) cancel(ctx context.Context) <-chan struct{} {
	l.mu.Lock()
	c := l.current
	l.mu.Unlock()
	done := make(chan struct{})
	if c == nil {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		c.call(func() { _ = c.ch.Cancel(c.consumerTag(), false) })
	}()
	timer := time.NewTimer(farewell)
	defer timer.Stop()
	select {
	case <-c.drained:
	case <-timer.C:
	case <-ctx.Done():
	}
	return done
}

// fill returns when all has arrived that may, or nothing seems to be under way. What
// arrived after the goodbye of a consumer would come back as if a worker had died of it,
// and for each acknowledgement of the last moment something is under way.
func (l *lane) fill(ctx context.Context) {
	l.mu.Lock()
	c := l.current
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, underWay)
	defer cancel()
	for c != nil && !c.over() && c.open.Load() < int64(l.prefetch) && sleep(ctx, time.Millisecond) {
	}
}

// underWay is how long a job takes at most, but on a broker that is very busy, from an
// acknowledgement that makes room for it until it is here.
const underWay = 100 * time.Millisecond

// sent returns when all settlements are with the system.
func (l *lane) sent(ctx context.Context) error {
	l.mu.Lock()
	c := l.current
	l.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.acks.Wait(ctx)
}

// hears returns nil if there is a consumer.
func (l *lane) hears() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.current != nil && !l.current.over():
		return nil
	case l.err != nil:
		return l.err
	}
	return errConsumer
}
