package embedded

import (
	"database/sql"
	"slices"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// ending is the kind of a settlement.
type ending int

const (
	endNone ending = iota
	endAck
	endRetry
	endDead
	endRelease
	endForeign // bytes that are no record
)

// settlement is one call that ends a run.
type settlement struct {
	request
	d     *delivery
	kind  ending
	next  []entry       // endAck
	body  []byte        // endRetry, endDead, endForeign, and endRelease if the record changes
	after time.Duration // endRetry
	class string        // endDead

	claims bool  // the provider's claims are its own
	own    error // why this one is refused, though the transaction is fine
}

func (s *settlement) light() bool {
	return len(s.next) == 0 && (s.kind == endAck || s.kind == endRelease)
}

// finish takes over the outcome.
func (s *settlement) finish(_ *writer, err error) {
	if err == nil {
		err = s.own
	}
	s.d.settled(err)
	s.answer(err)
}

const (
	sqlFindRuns = "select n, run from running where n in (select value from json_each(?))"
	sqlDropRuns = "delete from running where n in (select value from json_each(?))"
	sqlEndRuns  = sqlDropRuns + " returning n, run, q, lease, crashes, pos"
	sqlRunAgain = "insert into running (n, run, q, lease, crashes, pos) values (?, ?, ?, ?, ?, ?)"
	sqlDropJobs = "delete from job where n in (select value from json_each(?))"
	sqlSetBody  = "update job set body = ? where n = ?"
)

func settlementJob(s *settlement) int64 { return s.d.n }

// settle does all settlements of a batch. A run whose number is not the one on
// record is no longer its worker's.
func (t *transaction) settle(list []*settlement) {
	wanted := make([]*settlement, 0, len(list))
	for _, s := range list {
		if s.own = t.refuse(s); s.own == nil {
			wanted = append(wanted, s)
		}
	}
	if len(wanted) == 0 {
		return
	}
	runs := t.endRuns(wanted)
	t.settled = make(map[int64]int64, len(wanted))
	gone := make([]*settlement, 0, len(wanted))
	for _, s := range wanted {
		if s.own = t.late(s, runs); s.own != nil {
			continue
		}
		t.settled[s.d.n] = s.d.run
		if t.end(s) {
			gone = append(gone, s)
		}
	}
	if len(gone) > 0 {
		t.exec(sqlDropJobs, numbers(gone, settlementJob))
	}
}

// refuse says why a settlement is not to be done, whosever the run is.
func (t *transaction) refuse(s *settlement) error {
	if s.d.isSettled() {
		return provider.ErrSettled
	}
	if s.kind == endDead && !t.roomForDead() {
		return provider.ErrDeadFull
	}
	if !s.claims {
		return nil
	}
	for i := range s.next {
		if e := &s.next[i]; e.dedupe.Key != "" && t.pendingFor(e) {
			return provider.ErrDedupePending
		}
	}
	return nil
}

// late says why a settlement comes too late.
func (t *transaction) late(s *settlement, runs map[int64]int64) error {
	switch {
	case runs[s.d.n] != s.d.run:
		return &provider.LostError{Stored: s.d.storedEarlier()}
	case t.settled[s.d.n] == s.d.run:
		return provider.ErrSettled
	}
	return nil
}

// runRow is a row of running.
type runRow struct{ n, run, q, lease, crashes, pos int64 }

// endRuns removes the runs of these settlements from the table, and returns the run
// of each job that had one. A run that none of them is for is put back: to look for
// those first would cost every settlement.
func (t *transaction) endRuns(list []*settlement) map[int64]int64 {
	wanted := make(map[int64]int64, len(list)) // the runs that are settled, by job
	for _, s := range list {
		wanted[s.d.n] = s.d.run
	}
	runs := make(map[int64]int64, len(list))
	var others []runRow
	t.query(sqlEndRuns, []any{numbers(list, settlementJob)}, func(rows *sql.Rows) error {
		var r runRow
		err := rows.Scan(&r.n, &r.run, &r.q, &r.lease, &r.crashes, &r.pos)
		runs[r.n] = r.run
		if wanted[r.n] != r.run {
			others = append(others, r)
		}
		return err
	})
	t.wrote = true
	for _, r := range others {
		if !slices.ContainsFunc(list, func(s *settlement) bool { return s.d.n == r.n && s.d.run == r.run }) {
			t.exec(sqlRunAgain, r.n, r.run, r.q, r.lease, r.crashes, r.pos)
		}
	}
	return runs
}

// end does one settlement, and reports whether the job leaves the table.
func (t *transaction) end(s *settlement) bool {
	d := s.d
	switch s.kind {
	case endAck:
		t.done(s)
		t.handOff(s)
		return true
	case endRetry:
		t.exec(sqlSetBody, s.body, d.n)
		t.again(d, s.after)
		return false
	case endRelease:
		if s.body != nil {
			t.exec(sqlSetBody, s.body, d.n)
		}
		t.makeReady(d.q, d.pos, d.n)
		return false
	default:
		t.bury(s)
		return true
	}
}

// done ends a job that had its outcome.
func (t *transaction) done(s *settlement) {
	t.tally(s.d.q).depth--
	t.leave(s.d.q, s.d.key, s.d.pos)
	if s.d.job.Dedupe.UntilDone && s.claims {
		t.free(scopeOwn, s.d.job.Dedupe.Key, s.d.job.ID)
	}
}

// handOff stores the next jobs. One whose key another job holds is merged into it.
func (t *transaction) handOff(s *settlement) {
	for i := range s.next {
		e := &s.next[i]
		if s.claims && e.dedupe.Key != "" {
			if _, ok := t.claimFor(e.id, e.dedupe); !ok {
				continue
			}
		}
		e.q = t.queue(scopeOwn, e.queue)
		t.incoming.add(e)
	}
}

// again lets a job wait for another run. With an ordering key it keeps its place;
// otherwise it goes to the end of its queue when it is due.
func (t *transaction) again(d *delivery, after time.Duration) {
	pos := d.pos
	if after > 0 {
		if d.key == 0 {
			pos = 0
		}
		t.insertHeld(heldRow{n: d.n, scope: scopeOwn, q: d.q, due: t.after(after), idh: hash(d.job.ID), pos: pos})
		return
	}
	if d.key == 0 {
		pos = t.next()
	}
	t.makeReady(d.q, pos, d.n)
}
