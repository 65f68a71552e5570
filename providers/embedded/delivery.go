package embedded

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// delivery is one run of one job: provider.Delivery.
type delivery struct {
	sub     *subscription
	job     provider.Job
	n       int64 // the job's number
	run     int64 // the fence: no other run, of any job, is (n, run)
	q       int64
	pos     int64
	key     int64
	crashes int64 // counted since the record was written

	endedIn int64 // the transaction that ended it, by serial; the writer's

	mu       sync.Mutex
	kind     kind // fixed by the first settlement
	state    state
	doubt    bool // an earlier settlement may be on record
	underWay int  // settlements
	lost     chan struct{}
}

// state is what is known of a run.
type state int

const (
	stateOpen state = iota
	stateSettled
	stateLost
)

// Job returns the job: provider.Delivery.
func (d *delivery) Job() *provider.Job { return &d.job }

// Lost is closed when a heartbeat or a settlement finds the lease lost:
// provider.Delivery.
func (d *delivery) Lost() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lostLocked()
}

func (d *delivery) lostLocked() chan struct{} {
	if d.lost == nil {
		d.lost = make(chan struct{})
	}
	return d.lost
}

// Ack ends the job and stores the next ones: provider.Delivery.
func (d *delivery) Ack(ctx context.Context, next []provider.Job) error {
	entries := make([]entry, len(next))
	for i := range next {
		if err := entries[i].setNew(d.sub.store, &next[i]); err != nil {
			return err
		}
	}
	for {
		err := d.settle(ctx, &settlement{kind: kindAck, next: entries})
		if !errors.Is(err, provider.ErrDedupePending) || !sleep(ctx, retryEvery) {
			return err
		}
	}
}

// Retry stores the job for another run: provider.Delivery.
func (d *delivery) Retry(ctx context.Context, again provider.Again) error {
	job := d.job.After(again)
	body, err := provider.Marshal(&job)
	if err != nil {
		return err
	}
	return d.settle(ctx, &settlement{kind: kindRetry, body: body, after: again.After})
}

// DeadLetter gives the job up: provider.Delivery.
func (d *delivery) DeadLetter(ctx context.Context, f provider.Failure) error {
	job := d.job.Dead(f)
	body, err := provider.Marshal(&job)
	if err != nil {
		return err
	}
	return d.settle(ctx, &settlement{kind: kindDeadLetter, body: body, class: f.Class})
}

// Release gives the job back: provider.Delivery.
func (d *delivery) Release(ctx context.Context) error {
	s := &settlement{kind: kindRelease}
	if d.crashes > 0 {
		body, err := provider.Marshal(&d.job)
		if err != nil {
			return err
		}
		s.body = body
	}
	return d.settle(ctx, s)
}

// settle hands a settlement to the writer and waits until it is on record.
func (d *delivery) settle(ctx context.Context, s *settlement) error {
	if !d.sub.settling.Enter() {
		return provider.ErrClosed
	}
	defer d.sub.settling.Leave()
	if err := d.fix(s.kind); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		d.withdraw()
		return err
	}
	w := d.sub.store.writer
	s.request, s.d, s.claims = w.newRequest(), d, d.sub.store.ownClaims()
	if err := w.submit(s); err != nil {
		d.withdraw()
		return err
	}
	switch w.await(ctx, &s.request) {
	case fateAnswered:
		return s.err
	case fateAbandoned:
		d.withdraw()
	}
	return w.whyLate(ctx)
}

// fix makes the first settlement's kind the only one.
func (d *delivery) fix(k kind) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == stateSettled || d.kind != kindNone && d.kind != k {
		return provider.ErrSettled
	}
	if d.state == stateLost {
		return &provider.LostError{Stored: d.earlierLocked()}
	}
	d.kind = k
	d.underWay++
	return nil
}

// withdraw takes back a settlement that the writer has not seen.
func (d *delivery) withdraw() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.underWay--
}

// settled is called by the writer with the outcome of a settlement.
func (d *delivery) settled(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.underWay--
	switch {
	case err == nil:
		d.state = stateSettled
	case errors.Is(err, provider.ErrLeaseLost):
		d.loseLocked()
	case doubtful(err):
		d.doubt = true
	}
}

func (d *delivery) loseLocked() {
	if d.state == stateOpen {
		d.state = stateLost
		close(d.lostLocked())
	}
}

func (d *delivery) isSettled() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state == stateSettled
}

// storedEarlier says what became of what a settlement carried, now that the lease
// is lost: it is not stored, unless an earlier call may have stored it.
func (d *delivery) storedEarlier() provider.Outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.earlierLocked()
}

func (d *delivery) earlierLocked() provider.Outcome {
	if d.doubt {
		return provider.OutcomeUnknown
	}
	return provider.OutcomeRefused
}

// sleep waits, and reports whether ctx is still on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
