package embedded

import (
	"github.com/backstage-go/backstage/runtime/provider"
)

// reception is one call of Receive.
type reception struct {
	request
	sub   *subscription
	lanes []int64
	most  int
	sweep bool // look into all lanes, not only those that just got something

	got   starting
	early chan starting // what it gets if the transaction goes well
}

// starting are jobs that start together.
type starting struct {
	run  int64 // their fence; 0 while there are none
	list []started
}

// started is a job that starts.
type started struct {
	n, q, pos, key, crashes int64
	body                    []byte
}

// add takes a job in, and returns errEnough when there are as many as wanted.
func (s *starting) add(c started, most int) error {
	s.list = append(s.list, c)
	if len(s.list) >= most {
		return errEnough
	}
	return nil
}

func newReception(s *subscription, lanes []int64, most int) *reception {
	return &reception{request: s.store.writer.newRequest(), sub: s, lanes: lanes, most: most, sweep: true, early: make(chan starting, 1)}
}

func (r *reception) light() bool { return false }

// finish hands over what was started, or lets the call wait until there is something.
func (r *reception) finish(w *writer, err error) {
	switch {
	case err != nil:
		r.answer(err)
	case len(r.got.list) == 0:
		r.sweep = false
		if r.standBy() {
			w.standby.receptions = append(w.standby.receptions, r)
		}
	case !r.answer(nil):
		w.giveBack(r)
	}
}

// giveBack releases what was started for a caller that has left, as if it had
// never started.
func (w *writer) giveBack(r *reception) {
	list, run := r.got.list, r.got.run
	_ = w.submit(w.newErrand(func(t *transaction) error {
		for i := range list {
			t.putBack(&list[i], run)
		}
		return nil
	}))
}

// These two have no limit, but are left when there is enough: SQLite prepares a
// statement anew whenever a limit is bound.
const (
	sqlLapsed = `select r.n, r.q, r.pos, j.key, r.crashes, j.body from running r join job j on j.n = r.n
where r.lease <= ? and r.q = ?`
	sqlTakeOver = "update running set run = ?, lease = ?, crashes = crashes + 1 where n in (select value from json_each(?))"
	sqlWaiting  = `select r.n, r.pos, j.key, j.body from ready r left join job j on j.n = r.n
where r.q = ? order by r.pos`
	sqlStart   = "insert into running (n, run, q, lease, crashes, pos) select n, ?, q, ?, 0, pos from ready where q = ? and pos <= ?"
	sqlStarted = "delete from ready where q = ? and pos <= ?"
	sqlPutBack = "delete from running where n = ? and run = ?"
	sqlUncrash = "update running set lease = 0, crashes = ? where n = ? and run = ?"
)

// stage starts jobs for a reception: first those of dead workers, then what is
// ready in its lanes, in their order.
func (r *reception) stage(t *transaction) {
	r.got = starting{}
	r.fill(t)
	if len(r.got.list) == 0 || t.err != nil {
		return
	}
	select {
	case r.early <- r.got:
	default: // an attempt before this one failed
	}
}

func (r *reception) fill(t *transaction) {
	if t.now-r.sub.tookOver >= int64(takeoverEvery) || t.now < r.sub.tookOver {
		r.takeOver(t)
		if len(r.got.list) < r.most { // else there may be more: the next reception looks at once
			r.sub.tookOver = t.now
		}
	}
	for _, q := range r.lanes {
		if len(r.got.list) >= r.most {
			return
		}
		if r.sweep || t.lanes[q] {
			r.start(t, q)
		}
	}
}

// fence returns the run number of this reception.
func (r *reception) fence(t *transaction) int64 {
	if r.got.run == 0 {
		r.got.run = t.next()
	}
	return r.got.run
}

// takeOver starts what dead workers left.
func (r *reception) takeOver(t *transaction) {
	for _, q := range r.lanes {
		if len(r.got.list) >= r.most {
			break
		}
		t.query(sqlLapsed, []any{t.now, q}, func(found row) error {
			var c started
			if err := found.scan(&c.n, &c.q, &c.pos, &c.key, &c.crashes, &c.body); err != nil {
				return err
			}
			c.crashes++
			return r.got.add(c, r.most)
		})
	}
	if len(r.got.list) > 0 {
		t.exec(sqlTakeOver, r.fence(t), t.after(r.sub.lease), numbers(r.got.list, func(c started) int64 { return c.n }))
	}
}

// start starts what is in one lane: what is ready, and then what has just come.
func (r *reception) start(t *transaction, q int64) {
	r.startReady(t, q)
	room := r.most - len(r.got.list)
	if room == 0 || len(t.incoming.fresh[q]) == 0 {
		return
	}
	for _, e := range t.incoming.begin(q, room, r.fence(t), t.after(r.sub.lease)) {
		r.got.list = append(r.got.list, started{n: e.n, q: q, pos: e.n, body: e.body})
	}
}

// startReady starts what is ready in one lane.
func (r *reception) startReady(t *transaction, q int64) {
	before := len(r.got.list)
	c := started{q: q}
	var ghosts []int64
	t.query(sqlWaiting, []any{q}, func(found row) error {
		if err := found.scan(&c.n, &c.pos, &c.key, &c.body); err != nil {
			return err
		}
		if found[2] == nil { // no such job; its body might be empty
			ghosts = append(ghosts, c.n)
			return nil
		}
		return r.got.add(c, r.most)
	})
	if len(r.got.list)+len(ghosts) == before {
		return
	}
	t.exec(sqlStart, r.fence(t), t.after(r.sub.lease), q, c.pos)
	t.exec(sqlStarted, q, c.pos)
	if len(ghosts) > 0 {
		r.dropGhosts(t, q, ghosts)
	}
}

// dropGhosts removes places in a queue that have no job.
func (r *reception) dropGhosts(t *transaction, q int64, ghosts []int64) {
	for _, n := range ghosts {
		t.exec(sqlEndRuns, n, n, r.got.run)
	}
	t.tally(q).depth -= int64(len(ghosts))
	t.events = append(t.events, provider.Event{
		Kind: provider.Ghost, Queue: r.sub.name(q), Count: int64(len(ghosts)), Message: "waiting jobs that are not in the file were removed",
	})
}

// putBack undoes a start whose caller had left.
func (t *transaction) putBack(c *started, run int64) {
	if c.crashes > 0 {
		// A taken-over job keeps its crashes: it lapses at once, and the next
		// takeover counts this one.
		t.exec(sqlUncrash, c.crashes-1, c.n, run)
		return
	}
	if t.exec(sqlPutBack, c.n, run) > 0 {
		t.makeReady(c.q, c.pos, c.n)
	}
}
