package embedded

import (
	"cmp"
	"slices"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// kind is the verb of a settlement.
type kind int

const (
	kindNone kind = iota
	kindAck
	kindRetry
	kindDeadLetter
	kindRelease
	kindForeign // bytes that are no record
)

// settlement is one call that ends a run.
type settlement struct {
	request
	d     *delivery
	kind  kind
	next  []entry       // kindAck
	body  []byte        // kindRetry, kindDeadLetter, kindForeign, and kindRelease if the record changes
	after time.Duration // kindRetry
	class string        // kindDeadLetter

	claims bool  // the provider's claims are its own
	own    error // why this one is refused, though the transaction is fine
}

func (s *settlement) light() bool {
	return len(s.next) == 0 && (s.kind == kindAck || s.kind == kindRelease)
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
	sqlCountRuns = "select count(*) from running where n between ? and ? and run = ?"
	sqlEndRuns   = "delete from running where n between ? and ? and run = ?"
	sqlDropJobs  = "delete from job where n between ? and ?"
	sqlSetBody   = "update job set body = ? where n = ?"
)

// settle does all settlements of a batch. A run that is not on record is no longer
// its worker's.
func (t *transaction) settle(list []*settlement) {
	wanted := make([]*settlement, 0, len(list))
	for _, s := range list {
		if s.own = t.refuse(s); s.own == nil {
			wanted = append(wanted, s)
		}
	}
	t.endRuns(wanted)
	gone := make([]int64, 0, len(wanted))
	for _, s := range wanted {
		if s.own == nil && t.end(s) {
			gone = append(gone, s.d.n)
		}
	}
	t.dropJobs(gone)
}

// refuse says why a settlement is not to be done, whosever the run is.
func (t *transaction) refuse(s *settlement) error {
	if s.d.isSettled() {
		return provider.ErrSettled
	}
	if s.kind == kindDeadLetter && !t.roomForDead() {
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

// endRuns removes the runs of these settlements from the table, and refuses those
// whose run is not there. Jobs that start together have consecutive numbers, and often
// end together: one statement removes a stretch of them, at a fifth of what each would
// cost alone.
func (t *transaction) endRuns(list []*settlement) {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b *settlement) int {
		return cmp.Or(cmp.Compare(a.d.run, b.d.run), cmp.Compare(a.d.n, b.d.n))
	})
	for rest := sorted; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].d.run == rest[0].d.run && rest[n].d.n == rest[n-1].d.n+1 {
			n++
		}
		if !t.endTogether(rest[:n]) {
			t.endEach(rest[:n])
		}
		rest = rest[n:]
	}
}

// endTogether ends a stretch, if all of its runs are there.
func (t *transaction) endTogether(list []*settlement) bool {
	if len(list) == 1 {
		return false
	}
	first, last := list[0].d, list[len(list)-1].d
	var there int64
	t.row(sqlCountRuns, []any{first.n, last.n, first.run}, &there)
	if there != int64(len(list)) {
		return false
	}
	t.exec(sqlEndRuns, first.n, last.n, first.run)
	for _, s := range list {
		s.d.endedIn = t.serial
	}
	return true
}

// endEach ends the runs that are there.
func (t *transaction) endEach(list []*settlement) {
	for _, s := range list {
		switch d := s.d; {
		case d.endedIn == t.serial:
			s.own = provider.ErrSettled // twice in one batch
		case t.exec(sqlEndRuns, d.n, d.n, d.run) == 0:
			s.own = &provider.LostError{Stored: d.storedEarlier()}
		default:
			d.endedIn = t.serial
		}
	}
}

// dropJobs removes jobs that stand nowhere any more. It sorts the list.
func (t *transaction) dropJobs(list []int64) {
	slices.Sort(list)
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n] == list[n-1]+1 {
			n++
		}
		t.exec(sqlDropJobs, list[0], list[n-1])
		list = list[n:]
	}
}

// end does one settlement, and reports whether the job leaves the table.
func (t *transaction) end(s *settlement) bool {
	d := s.d
	switch s.kind {
	case kindAck:
		t.done(s)
		t.handOff(s)
		return true
	case kindRetry:
		t.exec(sqlSetBody, s.body, d.n)
		t.again(d, s.after)
		return false
	case kindRelease:
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
		t.insertHeld(heldRow{n: d.n, scope: scopeOwn, q: d.q, due: t.after(after), idh: hash(d.job.ID), pos: pos, key: d.key})
		return
	}
	if d.key == 0 {
		pos = t.next()
	}
	t.makeReady(d.q, pos, d.n)
}
