package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/backstage-go/backstage/runtime/provider"
)

// delivery is one run of one job: provider.Delivery. Its fence is the channel that it
// came on: when that has ended nothing can be said about it any more, on whatever
// channel.
type delivery struct {
	source *consumer
	tag    uint64
	job    provider.Job

	mu     sync.Mutex
	kind   kind // fixed by the first settlement
	state  state
	flight chan struct{} // closed when the settlement under way has ended; nil if none is
	cargo  cargo
	letter string // the address of its dead letter
}

// kind is which settlement it is.
type kind int

const (
	kindNone kind = iota
	kindAck
	kindRetry
	kindDead
	kindRelease
)

// state is what is known of a run.
type state int

const (
	stateOpen state = iota
	stateSettled
	stateLost
)

// Job returns the job: provider.Delivery.
func (d *delivery) Job() *provider.Job { return &d.job }

// Lost is closed when the delivery's channel has ended: provider.Delivery.
func (d *delivery) Lost() <-chan struct{} { return d.source.lost }

// Ack ends the job, when the next ones are stored: provider.Delivery.
func (d *delivery) Ack(ctx context.Context, next []provider.Job) error {
	if len(next) == 0 {
		return d.settle(ctx, kindAck, nil)
	}
	return d.settle(ctx, kindAck, func() error { return d.carry(ctx, next) })
}

// Retry stores a copy for another run, and ends this one: provider.Delivery.
func (d *delivery) Retry(ctx context.Context, again provider.Again) error {
	return d.settle(ctx, kindRetry, func() error { return d.carry(ctx, []provider.Job{d.job.After(again)}) })
}

// Release stores a copy as it is, and ends this run: provider.Delivery. To give the
// message back would count as a crash.
func (d *delivery) Release(ctx context.Context) error {
	return d.settle(ctx, kindRelease, func() error { return d.carry(ctx, []provider.Job{d.job}) })
}

// DeadLetter stores the job among the dead letters, and ends the run:
// provider.Delivery.
func (d *delivery) DeadLetter(ctx context.Context, f provider.Failure) error {
	return d.settle(ctx, kindDead, func() error {
		job := d.job.Dead(f)
		return d.carryLetter(ctx, d.source.lane.queue, &job, nil, f)
	})
}

// settle ends a run with what it carries, if that is on record.
func (d *delivery) settle(ctx context.Context, k kind, carry func() error) error {
	sub := d.source.lane.sub
	if !sub.settling.Enter() {
		return provider.ErrClosed
	}
	defer sub.settling.Leave()
	if err := d.begin(ctx, k); err != nil {
		return err
	}
	if err := d.open(ctx); err != nil {
		return d.end(err)
	}
	if carry != nil {
		if err := carry(); err != nil {
			return d.end(err)
		}
		sub.store.point("carried")
	}
	e := &ending{delivery: d, done: make(chan struct{})}
	d.source.acks.add(e)
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
		return fmt.Errorf("the settlement may be on its way: %w", ctx.Err())
	}
}

// open reports whether a settlement may begin.
func (d *delivery) open(ctx context.Context) error {
	if d.source.over() {
		return provider.ErrLeaseLost
	}
	return ctx.Err()
}

// begin makes the first settlement's kind the only one, and waits for an earlier call
// of the same kind that is under way.
func (d *delivery) begin(ctx context.Context, k kind) error {
	for {
		d.mu.Lock()
		if d.state == stateSettled || d.kind != kindNone && d.kind != k {
			d.mu.Unlock()
			return provider.ErrSettled
		}
		d.kind = k
		if d.state == stateLost {
			defer d.mu.Unlock()
			return d.lostLocked()
		}
		flight := d.flight
		if flight == nil {
			d.flight = make(chan struct{})
			d.mu.Unlock()
			return nil
		}
		d.mu.Unlock()
		select {
		case <-flight:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// end takes over the outcome of the settlement under way, and returns the error to
// answer with.
func (d *delivery) end(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.flight)
	d.flight = nil
	switch {
	case err == nil:
		d.state = stateSettled
	case errors.Is(err, provider.ErrLeaseLost):
		d.state = stateLost
		return d.lostLocked()
	}
	return err
}

func (d *delivery) lostLocked() error { return &provider.LostError{Stored: d.cargo.stored()} }

// beats says whether the delivery is still ours.
func (d *delivery) beats() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.state == stateSettled:
		return provider.ErrSettled
	case d.flight != nil:
		return nil
	case d.state == stateLost, d.source.over():
		return provider.ErrLeaseLost
	case d.source.conn.doubtful():
		return d.source.conn.silence()
	}
	return nil
}
