package embedded

import (
	"context"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// reservation is a number of due jobs that one promoter publishes.
type reservation struct {
	token int64
	list  []int64 // job numbers
	jobs  []provider.Job
	odd   []int64 // bytes that are no record
	next  int64   // when something else is due, if there is nothing now
}

// publishDue reserves due jobs, publishes them, and forgets those that are stored.
// It returns when to look again.
func (d *delays) publishDue(ctx context.Context, publish provider.Publish) (int64, error) {
	r, err := d.reserve(ctx)
	if err != nil {
		return 0, err
	}
	d.buryOdd(ctx, r)
	if len(r.list) == 0 {
		return r.next, nil
	}
	d.store.writer.point("reserved")
	within, cancel := context.WithTimeout(ctx, d.store.cfg.PromotionLease*9/10)
	defer cancel() // which tells who published that it is forgotten
	stored := publish(within, r.jobs)
	d.store.writer.point("published")
	return 0, d.conclude(ctx, r, stored)
}

const (
	sqlDueLater  = "select coalesce(min(due), ?) from held where scope = ? and behind = 0 and due > ?"
	sqlBodies    = "select j.n, j.body from json_each(?) e join job j on j.n = e.value order by e.key"
	sqlReserve   = "update held set due = ?, token = ? where n in (select value from json_each(?))"
	sqlGiveBack  = "update held set due = ?, token = -token where token = ? and n in (select value from json_each(?))"
	sqlFindToken = `select h.n, h.scope, h.q, h.pos, j.key from held h join job j on j.n = h.n
where h.token = ? and h.n in (select value from json_each(?))`
	sqlOdd = `select h.n, h.scope, h.q, h.pos, j.key, j.body from held h join job j on j.n = h.n
where h.token = ? and h.n in (select value from json_each(?))`
)

// reserve takes due jobs for one promoter: of each ordering key the first alone,
// because with several promoters nothing else would keep their order. One that kept
// its place in this file goes back to it.
func (d *delays) reserve(ctx context.Context) (reservation, error) {
	var r reservation
	err := d.store.writer.do(ctx, func(t *transaction) error {
		r = reservation{}
		scope := d.scope.id(t)
		due := t.dueNow(scope, mostDue)
		if len(due) == 0 {
			r.next = t.dueLater(scope)
			return nil
		}
		placed, others := keepPlaces(due)
		t.moveIn(placed)
		if len(others) == 0 {
			return nil
		}
		list := numbers(others, func(h heldRow) int64 { return h.n })
		t.query(sqlBodies, []any{list}, r.add)
		r.token = t.next()
		t.exec(sqlReserve, t.after(d.store.cfg.PromotionLease), r.token, list)
		return nil
	})
	if err != nil {
		return reservation{}, err // the writer may still be at work on it
	}
	return r, nil
}

// add takes a job in.
func (r *reservation) add(found row) error {
	var n int64
	var body []byte
	if err := found.scan(&n, &body); err != nil {
		return err
	}
	job, err := provider.Unmarshal(body)
	if err != nil {
		r.odd = append(r.odd, n)
		return nil
	}
	r.list, r.jobs = append(r.list, n), append(r.jobs, job)
	return nil
}

// keepPlaces divides due jobs into those that have a place in this file and others.
func keepPlaces(due []heldRow) (placed, others []heldRow) {
	for _, h := range due {
		if h.pos != 0 {
			placed = append(placed, h)
		} else {
			others = append(others, h)
		}
	}
	return placed, others
}

// dueLater returns when the next job of a scope is due, or a reservation ends.
func (t *transaction) dueLater(scope int64) int64 {
	due := int64(forever)
	t.row(sqlDueLater, []any{due, scope, t.now}, &due)
	return due
}

// conclude forgets what was stored, and gives back what was refused. What is
// unknown stays reserved, and is tried again after the lease. It has a context of
// its own, because what was published should be forgotten even if the promoter is
// to end.
func (d *delays) conclude(ctx context.Context, r reservation, stored []provider.Stored) error {
	var forget, refused []int64
	for i, n := range r.list {
		switch {
		case i >= len(stored) || stored[i].Outcome == provider.OutcomeUnknown:
		case stored[i].Outcome == provider.OutcomeRefused:
			refused = append(refused, n)
		default:
			forget = append(forget, n)
		}
	}
	wait := refusedWait
	if ctx.Err() != nil {
		wait = 0 // refused because of it
	}
	apart, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return d.store.writer.do(apart, func(t *transaction) error {
		t.forget(r.token, forget)
		if len(refused) > 0 {
			t.giveBack(d.scope.id(t), r.token, refused, t.after(wait))
		}
		return nil
	})
}

// forget removes reserved jobs, unless they were held anew or reserved by another.
func (t *transaction) forget(token int64, list []int64) {
	var held []heldRow
	t.query(sqlFindToken, []any{token, numbers(list, same)}, func(r row) error {
		var h heldRow
		err := r.scan(&h.n, &h.scope, &h.q, &h.pos, &h.key)
		held = append(held, h)
		return err
	})
	if len(held) == 0 {
		return
	}
	gone := make([]int64, len(held))
	for i, h := range held {
		gone[i] = h.n
	}
	t.exec(sqlDropDue, numbers(gone, same))
	t.dropJobs(gone)
	for _, h := range held {
		t.forgotten(h)
	}
}

// forgotten counts a held job that is gone, and lets the next of its key start or
// be promoted.
func (t *transaction) forgotten(h heldRow) {
	t.elect(h.scope, h.waitsIn())
	t.tally(h.q).held--
	t.uncount(h.scope, h.q)
	if h.pos != 0 {
		t.leave(h.q, h.key, h.pos)
	}
}

// giveBack ends the reservation of jobs that were not published.
func (t *transaction) giveBack(scope, token int64, list []int64, due int64) {
	t.exec(sqlGiveBack, due, token, numbers(list, same))
	t.heldUntil(scope, due)
}

// buryOdd dead-letters held bytes that are no record.
func (d *delays) buryOdd(ctx context.Context, r reservation) {
	if len(r.odd) == 0 {
		return
	}
	var buried []string
	err := d.store.writer.do(ctx, func(t *transaction) error {
		buried = buried[:0]
		var held []heldRow
		t.query(sqlOdd, []any{r.token, numbers(r.odd, same)}, func(r row) error {
			var h heldRow
			err := r.scan(&h.n, &h.scope, &h.q, &h.pos, &h.key, &h.body)
			held = append(held, h)
			return err
		})
		for _, h := range held {
			t.exec(sqlDropHeld, h.n)
			t.exec(sqlDropJob, h.n)
			t.forgotten(h)
			buried = append(buried, t.buryForeign(h.q, h.body))
		}
		return nil
	})
	if err == nil {
		d.store.foreign(buried)
	}
}
