package embedded

import (
	"context"
	"errors"

	"github.com/backstage-go/backstage/runtime/provider"
)

const (
	sqlFindRuns = "select n, run from running where n in (select value from json_each(?))"
	sqlExtend   = "update running set lease = ? where n in (select value from json_each(?))"
)

var errNotOurs = errors.New("the delivery is not of this subscription")

// extension is one heartbeat.
type extension struct {
	request
	sub    *subscription
	ours   []*delivery
	staged []error
}

func (e *extension) light() bool { return true }

// finish takes over what is known of each delivery.
func (e *extension) finish(_ *writer, err error) {
	if err == nil {
		for i, d := range e.ours {
			e.staged[i] = d.beat(e.staged[i])
		}
	}
	e.answer(err)
}

func deliveryJob(d *delivery) int64 { return d.n }

// extend does the heartbeats of a batch.
func (t *transaction) extend(list []*extension) {
	for _, e := range list {
		runs := make(map[int64]int64, len(e.ours))
		t.query(sqlFindRuns, []any{numbers(e.ours, deliveryJob)}, func(r row) error {
			var n, run int64
			err := r.scan(&n, &run)
			runs[n] = run
			return err
		})
		alive := make([]*delivery, 0, len(e.ours))
		for i, d := range e.ours {
			e.staged[i] = nil
			if runs[d.n] == d.run {
				alive = append(alive, d)
			} else if d.endedIn != t.serial {
				e.staged[i] = provider.ErrLeaseLost
			}
		}
		if len(alive) > 0 {
			t.exec(sqlExtend, t.after(e.sub.lease), numbers(alive, deliveryJob))
		}
	}
}

// beat takes over the outcome of a heartbeat. Only what nobody is settling can be
// lost by it.
func (d *delivery) beat(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.state == stateSettled:
		return provider.ErrSettled
	case err == nil || d.underWay > 0:
		return nil
	case d.doubt:
		return errDoubt
	}
	d.loseLocked()
	return provider.ErrLeaseLost
}

var errDoubt = errors.New("a settlement that failed may be on record")

// Extend is the heartbeat: provider.Subscription.
func (s *subscription) Extend(ctx context.Context, deliveries []provider.Delivery) []error {
	errs := make([]error, len(deliveries))
	e := &extension{request: s.store.writer.newRequest(), sub: s}
	places := make([]int, 0, len(deliveries))
	for i := range deliveries {
		d, ok := deliveries[i].(*delivery)
		if !ok || d.sub != s {
			errs[i] = errNotOurs
			continue
		}
		e.ours, places = append(e.ours, d), append(places, i)
	}
	e.staged = make([]error, len(e.ours))
	err := s.heartbeat(ctx, e)
	for i, at := range places {
		if err != nil {
			errs[at] = err
		} else {
			errs[at] = e.staged[i]
		}
	}
	return errs
}

func (s *subscription) heartbeat(ctx context.Context, e *extension) error {
	if err := ctx.Err(); err != nil || len(e.ours) == 0 {
		return err
	}
	if !s.settling.Enter() {
		return provider.ErrClosed
	}
	defer s.settling.Leave()
	if err := s.store.writer.submit(e); err != nil {
		return err
	}
	if s.store.writer.await(ctx, &e.request) != fateAnswered {
		return s.store.writer.whyLate(ctx)
	}
	return e.err
}
