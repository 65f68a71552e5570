package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/providers/internal/run"
	"github.com/backstage-go/backstage/providers/kafka/internal/tracker"
	"github.com/backstage-go/backstage/runtime/provider"
)

// delivery is one run of one job: provider.Delivery. It belongs to the partition as this
// worker had it when the run began: when others have it, the run is lost.
type delivery struct {
	part  *partition
	start tracker.Run
	job   provider.Job
	run   run.Run
	round *round // where it waits for the commit; nil before it is settled
}

// deliveryLocked makes a delivery of a run that was just started. It returns nil for
// bytes that are no job.
func (p *partition) deliveryLocked(start tracker.Run) *delivery {
	r := p.held[start.Offset]
	p.bytes -= r.size
	d := &delivery{part: p, start: start, job: r.job}
	if r.err != nil {
		p.sub.work.Go(func() { d.bury(r) })
		return nil
	}
	c := &d.job.Counters
	c.Crashes += start.Crashes
	if start.Counts != (tracker.Counts{}) {
		c.Failures, c.Snoozes, c.Parks = start.Counts.Failures, start.Counts.Snoozes, start.Counts.Parks
	}
	return d
}

// Job returns the job: provider.Delivery.
func (d *delivery) Job() *provider.Job { return &d.job }

// Lost is closed when another worker has the delivery's partition: provider.Delivery.
func (d *delivery) Lost() <-chan struct{} { return d.part.lost }

// Ack ends the job, when the next ones are stored: provider.Delivery.
func (d *delivery) Ack(ctx context.Context, next []provider.Job) error {
	var carry func() error
	if len(next) > 0 {
		carry = func() error { return d.run.Carry(ctx, d.part.sub.store, next) }
	}
	return d.settle(ctx, run.Ack, carry, d.end)
}

// DeadLetter stores the job among the dead letters, and ends the run: provider.Delivery.
func (d *delivery) DeadLetter(ctx context.Context, f provider.Failure) error {
	return d.settle(ctx, run.Dead, func() error {
		job := d.job.Dead(f)
		return d.carryLetter(ctx, &job, nil, f)
	}, d.end)
}

// Retry lets a job with an ordering key wait in its place: provider.Delivery. The
// failure itself is kept as long as this worker has the partition, its number for ever.
func (d *delivery) Retry(ctx context.Context, again provider.Again) error {
	if d.job.OrderingKey == "" {
		return fmt.Errorf("job %s has no ordering key: %w", d.job.ID, errUnkept)
	}
	return d.settle(ctx, run.Retry, nil, func() (int64, error) { return d.again(again) })
}

// errUnkept is why a job cannot wait for its retry in Kafka.
var errUnkept = errors.New("kafka keeps nothing for later: lend it Delays")

// Release gives the job back where it is, and its run counts as nothing:
// provider.Delivery.
func (d *delivery) Release(ctx context.Context) error {
	return d.settle(ctx, run.Release, nil, d.back)
}

// end settles the record. The subscription is locked.
func (d *delivery) end() (int64, error) {
	commit, err := d.part.tracker.Settle(d.start)
	if err == nil {
		delete(d.part.held, d.start.Offset)
		d.part.wake()
	}
	return commit, err
}

// back lets the record start again. The subscription is locked.
func (d *delivery) back() (int64, error) {
	commit, err := d.part.tracker.Release(d.start)
	if err == nil {
		d.part.bytes += d.part.held[d.start.Offset].size
	}
	return commit, err
}

// again lets the record wait in its place. The subscription is locked.
func (d *delivery) again(again provider.Again) (int64, error) {
	job, due := d.job.After(again), int64(0)
	if again.After > 0 {
		due = millis(time.Now().Add(again.After + time.Millisecond))
	}
	c := job.Counters
	commit, err := d.part.tracker.Again(d.start, tracker.Counts{Failures: c.Failures, Snoozes: c.Snoozes, Parks: c.Parks}, due)
	if err == nil {
		r := d.part.held[d.start.Offset]
		job.Counters.Crashes -= d.start.Crashes
		job.Delay = 0
		r.job = job
		d.part.bytes += r.size
	}
	return commit, err
}

// settle ends a run with what it carries, if that is on record.
func (d *delivery) settle(ctx context.Context, k run.Kind, carry func() error, how func() (int64, error)) error {
	sub := d.part.sub
	if !sub.settling.Enter() {
		return provider.ErrClosed
	}
	defer sub.settling.Leave()
	if err := d.run.Begin(ctx, k); err != nil {
		return err
	}
	if carry != nil && d.round == nil {
		err := d.ours(ctx)
		if err == nil {
			err = carry()
		}
		if err != nil {
			return d.run.End(err)
		}
		sub.store.point("carried")
	}
	if err := d.note(ctx, how); err != nil {
		return d.run.End(err)
	}
	select {
	case <-d.round.done:
		return d.run.End(nil)
	case <-d.part.lost:
		return d.run.End(provider.ErrLeaseLost)
	case <-ctx.Done():
		return d.run.End(fmt.Errorf("the settlement is not on record yet: %w", waited(ctx, sub.hears())))
	}
}

// note tells the tracker, unless an earlier call has.
func (d *delivery) note(ctx context.Context, how func() (int64, error)) error {
	if d.round != nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s := d.part.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts[d.part.at] != d.part {
		return provider.ErrLeaseLost
	}
	commit, err := how()
	if err != nil {
		return err
	}
	d.round = d.part.roundLocked(commit)
	s.commit.kick()
	return nil
}

// carryLetter stores a dead letter that was not stored before: a job, or bytes that are
// none.
func (d *delivery) carryLetter(ctx context.Context, job *provider.Job, raw []byte, f provider.Failure) error {
	return d.run.CarryLetter(func(id string) (provider.Outcome, error) {
		return d.part.sub.store.putLetter(ctx, id, d.part.lane.queue, job, raw, f)
	})
}

// bury puts bytes that are no job among the dead letters, however long that takes.
func (d *delivery) bury(r *record) {
	p := d.part
	f := provider.Failure{At: time.Now(), Class: provider.ClassNoRecord, Message: r.err.Error(), Worker: p.sub.opts.Worker}
	for wait := firstWait; p.ctx.Err() == nil; wait = min(2*wait, lastWait) {
		err := d.settle(p.ctx, run.Dead, func() error { return d.carryLetter(p.ctx, nil, r.raw, f) }, d.end)
		if err == nil || errors.Is(err, provider.ErrSettled) {
			p.tell(provider.ForeignRecord, 1, fmt.Sprintf("what is at offset %d is no job; it is among the dead letters", r.offset), r.err)
			return
		}
		if errors.Is(err, provider.ErrLeaseLost) || errors.Is(err, provider.ErrClosed) || !sleep(p.ctx, wait) {
			return
		}
	}
}
