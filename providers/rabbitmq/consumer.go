package rabbitmq

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/providers/internal/batch"
	"github.com/backstage-go/backstage/runtime/provider"
)

// consumer is one channel of a lane, from its opening to its end. Delivery tags mean
// something on their channel only, and start again at 1 on the next one: a delivery
// is bound to its consumer, and ends with it.
type consumer struct {
	lane    *lane
	conn    *connection
	ch      *amqp.Channel
	tag     string
	ends    chan *amqp.Error
	cancels chan string
	acks    batch.Batcher[*ending]
	settled acknowledged // of acks' flush alone
	open    atomic.Int64 // deliveries that are not settled

	drained chan struct{} // closed when nothing more arrives

	calls sync.Mutex // one call that waits for an answer at a time

	mu     sync.Mutex
	cause  error
	lost   chan struct{} // closed when the channel has ended
	ending bool
}

// acknowledged are the tags that were acknowledged on a channel.
type acknowledged struct {
	upTo  uint64 // all up to this one
	above map[uint64]bool
}

// consumerTag names the consumer to those who look into the broker.
func (c *consumer) consumerTag() string {
	if len(c.tag) > 200 {
		return c.tag[:200]
	}
	return c.tag
}

// end notes that the channel has ended: what it delivered is no longer ours.
func (c *consumer) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ending {
		c.ending, c.cause = true, cause
		close(c.lost)
	}
}

func (c *consumer) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// over reports whether the channel has ended.
func (c *consumer) over() bool {
	select {
	case <-c.lost:
		return true
	default:
		return c.ch.IsClosed()
	}
}

// ending is one acknowledgement on its way.
type ending struct {
	delivery *delivery
	done     chan struct{} // closed when err is there
	err      error
}

// acknowledge sends acknowledgements, as few as say it all, and answers when the
// system has them.
func (c *consumer) acknowledge(batch []*ending) {
	err := c.alive()
	if err == nil {
		err = c.send(batch)
	}
	if err == nil {
		err = c.conn.wire.flush(context.Background()) // ends with the connection
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", provider.ErrLeaseLost, err)
	}
	c.open.Add(-int64(len(batch)))
	for _, e := range batch {
		e.err = e.delivery.run.End(err)
		close(e.done)
	}
}

// send writes them: all up to one tag at once, if nothing before it is missing, and
// the others one by one.
func (c *consumer) send(batch []*ending) error {
	a := &c.settled
	if a.above == nil {
		a.above = make(map[uint64]bool)
	}
	for _, e := range batch {
		a.above[e.delivery.tag] = true
	}
	upTo := a.upTo
	for a.above[upTo+1] {
		upTo++
	}
	// The broker knows only tags that are open: the highest has to be a new one.
	highest := uint64(0)
	for _, e := range batch {
		if tag := e.delivery.tag; tag <= upTo {
			highest = max(highest, tag)
		}
	}
	if highest > 0 {
		if err := c.ch.Ack(highest, highest > a.upTo+1); err != nil {
			return err
		}
	}
	for ; a.upTo < upTo; a.upTo++ {
		delete(a.above, a.upTo+1)
	}
	for _, e := range batch {
		if tag := e.delivery.tag; tag > upTo {
			if err := c.ch.Ack(tag, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// alive makes sure that the broker has not given this process up, which may have been
// stopped for long: if it was silent for longer than a living one is, it is asked
// before anything is said to it.
func (c *consumer) alive() error {
	if c.over() {
		return errEnded
	}
	if !c.conn.doubtful() {
		return nil
	}
	var err error
	c.call(func() { err = c.ch.Qos(c.lane.prefetch, 0, false) })
	return err
}

// call makes one call at a time that waits for an answer: the client does not tell
// answers apart.
func (c *consumer) call(do func()) {
	c.calls.Lock()
	defer c.calls.Unlock()
	do()
}
