package embedded

import (
	"cmp"
	"slices"
)

// arrivals are the jobs that a transaction brings. They are written together at
// its end, many rows a statement. Those without a key that a waiting receiver takes
// at once are never ready in between.
type arrivals struct {
	t     *transaction
	plain []*entry
	keyed []*entry
	held  []*entry // in the file's own scope

	fresh map[int64][]*entry // plain ones that are in the table, and not yet ready, by queue
}

// add brings a job, to be ready now or when its delay is over. Its queue is known.
func (a *arrivals) add(e *entry) {
	t := a.t
	t.tally(e.q).depth++
	switch {
	case e.delay > 0:
		a.held = append(a.held, e)
	case e.key != 0:
		a.keyed = append(a.keyed, e)
	default:
		a.plain = append(a.plain, e)
	}
}

// flush writes what was added. Plain jobs still have to start, or be made ready by
// settleDown.
func (a *arrivals) flush() {
	t := a.t
	if len(a.plain) > 0 {
		a.sort()
		a.number(a.plain)
		t.insertJobs(a.plain)
	}
	if len(a.keyed) > 0 {
		a.number(a.keyed)
		t.insertJobs(a.keyed)
		t.join(a.keyed)
	}
	for _, e := range a.held {
		t.hold(scopeOwn, e)
	}
	a.plain, a.keyed, a.held = nil, nil, nil
}

// sort divides the plain jobs by queue. Those of a queue get consecutive numbers, so
// that whoever starts them can end them together.
func (a *arrivals) sort() {
	slices.SortStableFunc(a.plain, func(x, y *entry) int { return cmp.Compare(x.q, y.q) })
	a.fresh = make(map[int64][]*entry, 4)
	for rest := a.plain; len(rest) > 0; {
		q, n := rest[0].q, 1
		for n < len(rest) && rest[n].q == q {
			n++
		}
		a.fresh[q], rest = rest[:n], rest[n:]
		a.t.lanes[q] = true
	}
}

const (
	sqlFreshReady = "insert into ready (q, pos, n) select q, n, n from job where n between ? and ? and q = ? and key = 0"
	sqlFreshStart = `insert into running (n, run, q, lease, crashes, pos)
select n, ?, q, ?, 0, n from job where n between ? and ? and q = ? and key = 0`
)

// begin takes up to a number of a queue's fresh jobs, to be started at once.
func (a *arrivals) begin(q int64, most int, run, lease int64) []*entry {
	list := a.fresh[q]
	list, a.fresh[q] = list[:min(most, len(list))], list[min(most, len(list)):]
	a.t.exec(sqlFreshStart, run, lease, list[0].n, list[len(list)-1].n, q)
	return list
}

// settleDown makes what nobody took ready.
func (a *arrivals) settleDown() {
	for q, list := range a.fresh {
		if len(list) > 0 {
			a.t.exec(sqlFreshReady, list[0].n, list[len(list)-1].n, q)
			a.t.stir = true
		}
	}
}

// number gives entries their numbers.
func (a *arrivals) number(list []*entry) {
	first := a.t.take(int64(len(list)))
	for i, e := range list {
		e.n = first + int64(i)
	}
}

// readyFor notes that the queues of these jobs have work.
func (t *transaction) readyFor(list []*entry) {
	t.stir = true
	last := int64(-1)
	for _, e := range list {
		if e.q != last {
			t.lanes[e.q] = true
			last = e.q
		}
	}
}

func (t *transaction) insertJobs(list []*entry) {
	t.grew = true
	t.insertRows(&t.w.insert.job, len(list), func(args []any, i int) []any {
		e := list[i]
		return append(args, e.n, e.q, e.key, e.body)
	})
}
