package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// delivery is one run of one job: provider.Delivery. Its entry, its consumer, the
// number of the entry's deliveries and the generation of its group are its fence: no
// other run has all four. A consumer's name is used by one subscription only, so that
// any two runs that could be mistaken for each other are of one subscription; there
// the number of deliveries only grows (an entry that is given back keeps it), and
// where a group begins to count anew it has a new generation. A group that somebody
// makes anew by hand keeps the old one: then the subscription itself gives up its
// older run when it gets the entry again.
type delivery struct {
	lane       *lane
	id         string
	deliveries int64
	generation string
	job        provider.Job

	mu        sync.Mutex
	kind      ending // fixed by the first settlement
	state     state
	doubt     bool            // an earlier settlement may be on record
	confirmed time.Time       // when the lease began at the earliest
	flying    bool            // a settlement is under way
	landed    chan struct{}   // closed when it is answered; made by who waits for that
	handed    map[string]bool // next jobs that were stored elsewhere before
	lost      chan struct{}
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

// Lost is closed when a heartbeat or a settlement finds the lease lost, or the job
// comes to this worker again: provider.Delivery.
func (d *delivery) Lost() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lostLocked()
}

func (d *delivery) lostLocked() chan struct{} {
	if d.lost == nil {
		d.lost = make(chan struct{})
		if d.state == stateLost {
			close(d.lost)
		}
	}
	return d.lost
}

// Ack ends the job and stores the next ones: provider.Delivery.
func (d *delivery) Ack(ctx context.Context, next []provider.Job) error {
	if len(next) == 0 {
		return d.settle(ctx, &settlement{kind: endAck})
	}
	s := d.lane.desk.sub.store
	claims, delays := s.ownClaims(), s.ownDelays()
	entries := make([]*entry, len(next))
	for i := range next {
		e, err := newEntry(&next[i], scope{}, delays)
		if err != nil {
			return fmt.Errorf("next job %s: %w", next[i].ID, err)
		}
		if claims {
			e.dedupe = next[i].Dedupe
		}
		entries[i] = e
	}
	for wait := firstTry; ; wait = min(2*wait, lastTry) {
		err := d.settle(ctx, &settlement{kind: endAck, next: entries})
		if !errors.Is(err, provider.ErrDedupePending) || !sleep(ctx, wait) {
			return err
		}
	}
}

// handElsewhere stores next jobs that are in other slots, before the job ends, and
// leaves in next those that can be stored with its end. What one call has stored
// another does not store again.
func (d *delivery) handElsewhere(ctx context.Context, st *settlement) error {
	s := d.lane.desk.sub.store
	if s.keys.tags == TagNamespace {
		return nil
	}
	var here, away []*entry
	for _, e := range st.next {
		switch {
		case s.keys.tag(e.queue) == d.lane.desk.tag:
			here = append(here, e)
		case !d.handed[e.id]:
			away = append(away, e)
		}
	}
	st.next = here
	s.put(ctx, away)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handed == nil {
		d.handed = make(map[string]bool)
	}
	var errs []error
	for _, e := range away {
		if e.stored.Outcome == provider.OutcomeStored {
			d.handed[e.id] = true
			continue
		}
		d.doubt = d.doubt || e.stored.Outcome == provider.OutcomeUnknown
		errs = append(errs, fmt.Errorf("next job %s: %w", e.id, e.stored.Err))
	}
	return errors.Join(errs...)
}

// Retry stores the job for another run: provider.Delivery.
func (d *delivery) Retry(ctx context.Context, again provider.Again) error {
	job := d.job.After(again)
	body, err := provider.Marshal(&job)
	if err != nil {
		return err
	}
	s := &settlement{kind: endRetry, body: body, after: again.After}
	if again.After > 0 {
		s.stamp = stampOf(&job)
	}
	return d.settle(ctx, s)
}

// DeadLetter gives the job up: provider.Delivery.
func (d *delivery) DeadLetter(ctx context.Context, f provider.Failure) error {
	job := d.job.Dead(f)
	body, err := provider.Marshal(&job)
	if err != nil {
		return err
	}
	return d.settle(ctx, &settlement{kind: endDead, body: body})
}

// Release gives the job back: provider.Delivery. Others have it within two seconds,
// before what waits in its queue.
func (d *delivery) Release(ctx context.Context) error {
	return d.settle(ctx, &settlement{kind: endRelease})
}

// settle hands a settlement to the next flush and waits until it is on record.
func (d *delivery) settle(ctx context.Context, s *settlement) error {
	desk := d.lane.desk
	if !desk.sub.settling.Enter() {
		return provider.ErrClosed
	}
	defer desk.sub.settling.Leave()
	if err := d.begin(ctx, s.kind); err != nil {
		return err
	}
	err := ctx.Err()
	if err == nil && len(s.next) > 0 {
		err = d.handElsewhere(ctx, s) // nobody else settles meanwhile
	}
	if err != nil {
		return d.end(err, false)
	}
	s.delivery = d
	s.call.begin(1, &desk.sub.store.signals)
	desk.settles.add(ctx, []*settlement{s})
	if s.call.wait(ctx, func() {
		for range desk.settles.withdraw(func(other *settlement) bool { return other == s }) {
			d.end(ctx.Err(), false)
			s.answer(ctx.Err())
		}
	}) {
		return s.err
	}
	return fmt.Errorf("the settlement may be on its way: %w", ctx.Err())
}

// begin makes the first settlement's kind the only one, and waits for an earlier call
// of the same kind that is under way.
func (d *delivery) begin(ctx context.Context, kind ending) error {
	for {
		d.mu.Lock()
		if d.state == stateSettled || d.kind != endNone && d.kind != kind {
			d.mu.Unlock()
			return provider.ErrSettled
		}
		if d.state == stateLost {
			defer d.mu.Unlock()
			return d.lostErrorLocked()
		}
		d.kind = kind
		if !d.flying {
			d.flying = true
			d.mu.Unlock()
			return nil
		}
		if d.landed == nil {
			d.landed = make(chan struct{})
		}
		landed := d.landed
		d.mu.Unlock()
		select {
		case <-landed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// end takes over the outcome of the settlement under way, and returns the error to
// answer with. doubt says that it may be on record in spite of the error.
func (d *delivery) end(err error, doubt bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flying = false
	if d.landed != nil {
		close(d.landed)
		d.landed = nil
	}
	switch {
	case err == nil:
		d.state = stateSettled
	case errors.Is(err, provider.ErrLeaseLost):
		d.loseLocked()
		return d.lostErrorLocked()
	case doubt:
		d.doubt = true
	}
	return err
}

// lose notes that the run is not ours any more.
func (d *delivery) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loseLocked()
}

func (d *delivery) loseLocked() {
	if d.state == stateOpen {
		d.state = stateLost
		if d.lost != nil {
			close(d.lost)
		}
	}
}

// lostErrorLocked says what became of what a settlement carried: it is not stored,
// unless an earlier call stored it, or may have.
func (d *delivery) lostErrorLocked() error {
	switch {
	case d.doubt:
		return &provider.LostError{Stored: provider.OutcomeUnknown}
	case len(d.handed) > 0:
		return &provider.LostError{Stored: provider.OutcomeStored}
	}
	return &provider.LostError{Stored: provider.OutcomeRefused}
}

// beats reports whether a heartbeat is of use, and what it answers if not.
func (d *delivery) beats() (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.state == stateLost:
		return false, provider.ErrLeaseLost
	case d.state == stateSettled:
		return false, provider.ErrSettled
	case d.flying:
		return false, nil
	}
	return true, nil
}

// missed is called when Redis says that a heartbeat was not this run's. A settlement
// that is under way, or on record by now, is why.
func (d *delivery) missed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.state == stateSettled:
		return provider.ErrSettled
	case d.flying:
		return nil
	}
	d.loseLocked()
	return provider.ErrLeaseLost
}
