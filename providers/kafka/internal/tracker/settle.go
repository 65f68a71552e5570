package tracker

// Settle ends the record: it is never started again. The caller has stored elsewhere
// what is to come of it, if anything (next jobs, the copy of a retry, a dead letter).
//
// It returns the number of the commit from which on that is on record, which is when
// Final says so, and fails only with ErrNotRunning. So do Again and Release.
func (t *Tracker) Settle(run Run) (commit int64, err error) {
	r := t.stop(run)
	if r == nil {
		return 0, ErrNotRunning
	}
	t.space.release(r.keyed)
	if r.note != nil {
		t.notes.remove(r.note)
	}
	if r.line != nil {
		t.lines.leave(r.line, t.number+1)
	}
	if r != t.records.lowest {
		t.settled.add(r.offset, r.before)
		t.space.settled += settledSpace
	}
	t.records.remove(r)
	t.advance()
	return t.said(), nil
}

// Again puts the record off in its place, where the later ones of its key wait behind
// it: it does not start before due, in milliseconds since 1970, of the year 2109 at most
// (0: at once). The counts replace those that it had. It fails with ErrUnordered for a
// record without a key.
func (t *Tracker) Again(run Run, counts Counts, due int64) (commit int64, err error) {
	if run.running() && !run.record.keyed {
		return 0, ErrUnordered
	}
	r := t.stop(run)
	if r == nil {
		return 0, ErrNotRunning
	}
	n := t.noted(r)
	n.counts = counts.bounded()
	n.due = max(0, min(due, latestDue))
	t.queue(r)
	return t.said(), nil
}

// Release gives the record back: its run counts as nothing, and it may start again, here
// or elsewhere.
func (t *Tracker) Release(run Run) (commit int64, err error) {
	r := t.stop(run)
	if r == nil {
		return 0, ErrNotRunning
	}
	t.noted(r)
	t.queue(r)
	return t.said(), nil
}

// Final reports whether a commit with this number, or a later one, was accepted.
func (t *Tracker) Final(commit int64) bool { return commit <= t.final }

// stop ends a run. It returns nil if the run is not under way.
func (t *Tracker) stop(run Run) *record {
	if !run.running() {
		return nil
	}
	r := run.record
	r.run = 0
	t.running--
	if r.note != nil {
		r.note.open = false
	}
	return r
}

// noted returns the record's note, a new one if it has none. The space is reserved.
func (t *Tracker) noted(r *record) *note {
	if r.note == nil {
		r.note = &note{offset: r.offset, keyed: r.keyed}
		if r.crashed {
			r.note.crashes = 1
		}
		t.notes.add(r.note)
	}
	return r.note
}

// said takes note that the next commit has something to say, and returns its number.
func (t *Tracker) said() int64 {
	t.changed = true
	return t.number + 1
}
