package embedded

// arrivals are the jobs that a transaction brings. They are written together at
// its end, many rows a statement.
type arrivals struct {
	t     *transaction
	plain []*entry
	keyed []*entry
	held  []*entry // in the file's own scope
}

// add brings a job, to be ready now or when its delay is over. Its queue is known.
func (a *arrivals) add(e *entry) {
	t := a.t
	t.tally(e.q).depth++
	switch {
	case e.job.Delay > 0:
		a.held = append(a.held, e)
	case e.key != 0:
		a.keyed = append(a.keyed, e)
	default:
		a.plain = append(a.plain, e)
	}
}

// flush writes what was added.
func (a *arrivals) flush() {
	t := a.t
	if len(a.plain) > 0 {
		first := a.number(a.plain)
		t.insertJobs(a.plain)
		t.exec("insert into ready (q, pos, n) select q, n, n from job where n between ? and ?", first, first+int64(len(a.plain))-1)
		t.readyFor(a.plain)
	}
	if len(a.keyed) > 0 {
		a.number(a.keyed)
		t.insertJobs(a.keyed)
		t.join(a.keyed)
	}
	for _, e := range a.held {
		t.hold(scopeOwn, e)
	}
	a.plain, a.keyed, a.held = a.plain[:0], a.keyed[:0], a.held[:0]
}

// number gives entries their numbers, and returns the first.
func (a *arrivals) number(list []*entry) int64 {
	first := a.t.take(int64(len(list)))
	for i, e := range list {
		e.n = first + int64(i)
	}
	return first
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
	t.insertRows(&t.w.insert.job, len(list), func(args []any, i int) []any {
		e := list[i]
		return append(args, e.n, e.q, e.key, e.body)
	})
}
