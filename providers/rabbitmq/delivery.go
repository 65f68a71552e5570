package rabbitmq

import (
	"context"
	"fmt"

	"github.com/backstage-go/backstage/providers/internal/run"
	"github.com/backstage-go/backstage/runtime/provider"
)

// delivery is one run of one job: provider.Delivery. Its fence is the channel that it
// came on: when that has ended nothing can be said about it any more, on whatever
// channel.
type delivery struct {
	source *consumer
	tag    uint64
	job    provider.Job

	run run.Run
}

// Job returns the job: provider.Delivery.
func (d *delivery) Job() *provider.Job { return &d.job }

// Lost is closed when the delivery's channel has ended: provider.Delivery.
func (d *delivery) Lost() <-chan struct{} { return d.source.lost }

// Ack ends the job, when the next ones are stored: provider.Delivery.
func (d *delivery) Ack(ctx context.Context, next []provider.Job) error {
	if len(next) == 0 {
		return d.settle(ctx, run.Ack, nil)
	}
	return d.settle(ctx, run.Ack, d.carry(ctx, next...))
}

// Retry stores a copy for another run, and ends this one: provider.Delivery.
func (d *delivery) Retry(ctx context.Context, again provider.Again) error {
	return d.settle(ctx, run.Retry, d.carry(ctx, d.job.After(again)))
}

// Release stores a copy as it is, and ends this run: provider.Delivery. To give the
// message back would count as a crash.
func (d *delivery) Release(ctx context.Context) error {
	return d.settle(ctx, run.Release, d.carry(ctx, d.job))
}

// carry stores jobs that were not stored before.
func (d *delivery) carry(ctx context.Context, jobs ...provider.Job) func() error {
	return func() error { return d.run.Carry(ctx, d.source.lane.sub.store, jobs) }
}

// DeadLetter stores the job among the dead letters, and ends the run:
// provider.Delivery.
func (d *delivery) DeadLetter(ctx context.Context, f provider.Failure) error {
	return d.settle(ctx, run.Dead, func() error {
		job := d.job.Dead(f)
		return d.carryLetter(ctx, d.source.lane.queue, &job, nil, f)
	})
}

// settle ends a run with what it carries, if that is on record.
func (d *delivery) settle(ctx context.Context, k run.Kind, carry func() error) error {
	sub := d.source.lane.sub
	if !sub.settling.Enter() {
		return provider.ErrClosed
	}
	defer sub.settling.Leave()
	if err := d.run.Begin(ctx, k); err != nil {
		return err
	}
	if err := d.open(ctx); err != nil {
		return d.run.End(err)
	}
	if carry != nil {
		if err := carry(); err != nil {
			return d.run.End(err)
		}
		sub.store.point("carried")
	}
	e := &ending{delivery: d, done: make(chan struct{})}
	d.source.acks.Add(e)
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

// beats says whether the delivery is still ours.
func (d *delivery) beats() error {
	switch state := d.run.State(); {
	case state == run.Settled:
		return provider.ErrSettled
	case state == run.UnderWay:
		return nil
	case state == run.Lost, d.source.over():
		return provider.ErrLeaseLost
	case d.source.conn.doubtful():
		return d.source.conn.silence()
	}
	return nil
}

// carryLetter stores a dead letter that was not stored before: a job, or bytes that
// are none.
func (d *delivery) carryLetter(ctx context.Context, queue string, job *provider.Job, raw []byte, f provider.Failure) error {
	return d.run.CarryLetter(func(id string) (provider.Outcome, error) {
		m, err := letterMessage(id, job, raw, f)
		if err != nil {
			return provider.OutcomeRefused, err
		}
		s := d.source.lane.sub.store
		return s.sendPlain(ctx, s.names.dead(queue), m)
	})
}
