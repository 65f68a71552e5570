package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// deliveryLimit is how often a job may come back before the broker takes it for
// poison: never, in effect. It is the same number for every version, because it
// cannot be changed later, and -1 means 0 before RabbitMQ 4.
const deliveryLimit = 1_000_000

// queueArguments are those of a queue that keeps what it has, durably, on a majority
// of its nodes, and refuses rather than drops.
func queueArguments() amqp.Table {
	return amqp.Table{"x-queue-type": "quorum", "x-overflow": "reject-publish", "x-delivery-limit": int64(deliveryLimit)}
}

// jobArguments are those of a queue of jobs. What the broker wants to be rid of goes
// to the rescue queue, and is not forgotten here before it is there.
func (n names) jobArguments() amqp.Table {
	args := queueArguments()
	args["x-dead-letter-exchange"] = ""
	args["x-dead-letter-routing-key"] = n.rescue()
	args["x-dead-letter-strategy"] = "at-least-once"
	return args
}

// topology makes queues and exchanges, each once.
type topology struct {
	store *store

	mu     sync.Mutex
	made   map[string]*making
	births map[string]time.Time // of the queues that were made here
}

// youth is how long a queue that was just made is not used. A broker that crashes in a
// queue's first second may bring it back without a leader: it has not yet written down
// which replica belongs to it, and what was stored there meanwhile hangs.
const youth = 1500 * time.Millisecond

// making is what one goroutine makes and others wait for.
type making struct {
	done chan struct{}
	err  error
}

// once runs f for a name unless it has succeeded before.
func (t *topology) once(ctx context.Context, name string, f func() error) error {
	for {
		t.mu.Lock()
		m := t.made[name]
		if m == nil {
			m = &making{done: make(chan struct{})}
			if t.made == nil {
				t.made = make(map[string]*making)
			}
			t.made[name] = m
			t.mu.Unlock()
			m.err = f()
			if m.err != nil {
				t.forget(name)
			}
			close(m.done)
			return m.err
		}
		t.mu.Unlock()
		select {
		case <-m.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if m.err == nil || !cutOff(m.err) {
			return m.err
		}
	}
}

// has reports whether a name was made.
func (t *topology) has(name string) bool {
	t.mu.Lock()
	m := t.made[name]
	t.mu.Unlock()
	if m == nil {
		return false
	}
	select {
	case <-m.done:
		return m.err == nil
	default:
		return false
	}
}

// cutOff reports whether an error says no more than that a call had no time.
func cutOff(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// forget lets a name be made again, because it seems to be gone.
func (t *topology) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.made, name)
}

// queue makes sure that a queue of jobs is there.
func (t *topology) queue(ctx context.Context, queue string) error {
	n := t.store.names
	if err := n.check(queue); err != nil {
		return err
	}
	return t.once(ctx, n.jobs(queue), func() error {
		if err := t.plain(ctx, n.rescue()); err != nil {
			return err
		}
		return t.declare(ctx, n.jobs(queue), n.jobArguments(), func() error {
			// Before the queue itself: one that is there is registered.
			return t.store.register(ctx, queue)
		})
	})
}

// plain makes sure that a queue is there that has nothing of its own.
func (t *topology) plain(ctx context.Context, name string) error {
	return t.once(ctx, name, func() error { return t.declare(ctx, name, queueArguments(), nil) })
}

// declare declares a queue, or only looks for it. It calls before, if there is no such
// queue yet, and returns when a new one is old enough to be used.
func (t *topology) declare(ctx context.Context, name string, args amqp.Table, before func() error) error {
	if t.store.cfg.Passive {
		return t.look(ctx, name, args)
	}
	there, _, err := t.store.admin.exists(ctx, name)
	if err == nil && !there && before != nil {
		err = before()
	}
	if err != nil {
		return err
	}
	err = t.store.admin.do(ctx, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, args)
		return err
	})
	if err != nil {
		return declared(err)
	}
	t.mu.Lock()
	if !there {
		if t.births == nil {
			t.births = make(map[string]time.Time)
		}
		t.births[name] = time.Now()
	}
	wait := t.store.youth() - time.Since(t.births[name])
	t.mu.Unlock()
	if wait > 0 && !sleep(ctx, wait) {
		return ctx.Err()
	}
	return nil
}

func (s *store) youth() time.Duration {
	if s.in.youth > 0 {
		return s.in.youth
	}
	return youth
}

// look checks that a queue is there, and is as it has to be as far as anybody tells.
func (t *topology) look(ctx context.Context, name string, args amqp.Table) error {
	there, _, err := t.store.admin.exists(ctx, name)
	if err != nil {
		return err
	}
	if !there {
		return t.missing("queue", name)
	}
	if t.store.management == nil {
		return nil
	}
	q, err := t.store.management.queue(ctx, name)
	if err != nil {
		return err
	}
	for argument, want := range args {
		if got := q.Arguments[argument]; fmt.Sprint(got) != fmt.Sprint(want) {
			return otherArguments("queue", name, argument, fmt.Sprintf("it is %v, and has to be %v", got, want))
		}
	}
	return nil
}

// missing says that something is not there that this process may not make.
func (t *topology) missing(what, name string) error {
	return setupError(fmt.Sprintf("there is no %s %s, and Passive keeps it from being declared", what, name),
		"declare it as the documentation of this package says")
}

// exchange makes sure that an exchange is there, and bound.
func (t *topology) exchange(ctx context.Context, name string, bind func(ch *amqp.Channel) error) error {
	return t.once(ctx, name, func() error {
		err := t.store.admin.do(ctx, func(ch *amqp.Channel) error {
			if t.store.cfg.Passive {
				return ch.ExchangeDeclarePassive(name, amqp.ExchangeTopic, true, false, false, false, nil)
			}
			if err := ch.ExchangeDeclare(name, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
				return err
			}
			if bind == nil {
				return nil
			}
			return bind(ch)
		})
		if t.store.cfg.Passive && codeOf(err) == amqp.NotFound {
			return t.missing("exchange", name)
		}
		return declared(err)
	})
}
