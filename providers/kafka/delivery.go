package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/backstage-go/backstage/providers/kafka/internal/tracker"
	"github.com/backstage-go/backstage/runtime/provider"
)

// delivery is one run of one job: provider.Delivery. It belongs to the partition as this
// worker had it when the run began: when others have it, the run is lost.
type delivery struct {
	part *partition
	run  tracker.Run
	job  provider.Job

	mu     sync.Mutex
	kind   kind // fixed by the first settlement
	state  ending
	flight chan struct{} // closed when the settlement under way has ended; nil if none is
	round  *round        // where it waits for the commit; nil before it is settled
	cargo  cargo
	letter string // the id of its dead letter
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

// ending is what is known of a run.
type ending int

const (
	runOpen ending = iota
	runSettled
	runLost
)

// deliveryLocked makes a delivery of a run that was just started. It returns nil for
// bytes that are no job.
func (p *partition) deliveryLocked(run tracker.Run) *delivery {
	r := p.held[run.Offset]
	p.bytes -= r.size
	d := &delivery{part: p, run: run, job: r.job}
	if r.err != nil {
		p.sub.work.Go(func() { d.bury(r) })
		return nil
	}
	c := &d.job.Counters
	c.Crashes += run.Crashes
	if run.Counts != (tracker.Counts{}) {
		c.Failures, c.Snoozes, c.Parks = run.Counts.Failures, run.Counts.Snoozes, run.Counts.Parks
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
		carry = func() error { return d.carry(ctx, next) }
	}
	return d.settle(ctx, kindAck, carry, d.end)
}

// DeadLetter stores the job among the dead letters, and ends the run: provider.Delivery.
func (d *delivery) DeadLetter(ctx context.Context, f provider.Failure) error {
	return d.settle(ctx, kindDead, func() error {
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
	return d.settle(ctx, kindRetry, nil, func() (int64, error) { return d.again(again) })
}

// errUnkept is why a job cannot wait for its retry in Kafka.
var errUnkept = errors.New("kafka keeps nothing for later: lend it Delays")

// Release gives the job back where it is, and its run counts as nothing:
// provider.Delivery.
func (d *delivery) Release(ctx context.Context) error {
	return d.settle(ctx, kindRelease, nil, d.back)
}

// end settles the record. The subscription is locked.
func (d *delivery) end() (int64, error) {
	commit, err := d.part.tracker.Settle(d.run)
	if err == nil {
		delete(d.part.held, d.run.Offset)
		d.part.wake()
	}
	return commit, err
}

// back lets the record start again. The subscription is locked.
func (d *delivery) back() (int64, error) {
	commit, err := d.part.tracker.Release(d.run)
	if err == nil {
		d.part.bytes += d.part.held[d.run.Offset].size
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
	commit, err := d.part.tracker.Again(d.run, tracker.Counts{Failures: c.Failures, Snoozes: c.Snoozes, Parks: c.Parks}, due)
	if err == nil {
		r := d.part.held[d.run.Offset]
		job.Counters.Crashes -= d.run.Crashes
		job.Delay = 0
		r.job = job
		d.part.bytes += r.size
	}
	return commit, err
}

// settle ends a run with what it carries, if that is on record.
func (d *delivery) settle(ctx context.Context, k kind, carry func() error, how func() (int64, error)) error {
	sub := d.part.sub
	if !sub.settling.Enter() {
		return provider.ErrClosed
	}
	defer sub.settling.Leave()
	if err := d.begin(ctx, k); err != nil {
		return err
	}
	if carry != nil && d.round == nil {
		err := d.ours(ctx)
		if err == nil {
			err = carry()
		}
		if err != nil {
			return d.finish(err)
		}
		sub.store.point("carried")
	}
	if err := d.note(ctx, how); err != nil {
		return d.finish(err)
	}
	select {
	case <-d.round.done:
		return d.finish(nil)
	case <-d.part.lost:
		return d.finish(provider.ErrLeaseLost)
	case <-ctx.Done():
		return d.finish(fmt.Errorf("the settlement is not on record yet: %w", waited(ctx, sub.hears())))
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

// begin makes the first settlement's kind the only one, and waits for an earlier call
// of the same kind that is under way.
func (d *delivery) begin(ctx context.Context, k kind) error {
	for {
		d.mu.Lock()
		if d.state == runSettled || d.kind != kindNone && d.kind != k {
			d.mu.Unlock()
			return provider.ErrSettled
		}
		d.kind = k
		if d.state == runLost {
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

// finish takes over the outcome of the settlement under way, and returns the error to
// answer with.
func (d *delivery) finish(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.flight)
	d.flight = nil
	switch {
	case err == nil:
		d.state = runSettled
	case errors.Is(err, provider.ErrLeaseLost):
		d.state = runLost
		return d.lostLocked()
	}
	return err
}

func (d *delivery) lostLocked() error { return &provider.LostError{Stored: d.cargo.stored()} }
