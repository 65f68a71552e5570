package tracker

// Counts are what a record that waits in its place has behind it, besides crashes.
type Counts struct {
	// Failures is how many of its runs failed. At most 2,097,151 are counted.
	Failures int32
	// Snoozes is how many of its runs asked to be run later. At most 16,383 are
	// counted.
	Snoozes int32
	// Parks is how often it was put off because nobody could run it. At most 16,383
	// are counted.
	Parks int32
}

// Run is one start of a record.
type Run struct {
	// Offset is the record's.
	Offset int64
	// Crashes is how many runs of the record ended with their worker, 127 at most;
	// the first of them may not have been a run (see the package's documentation).
	Crashes int32
	// Counts are those that the last Again gave.
	Counts Counts

	number uint64
	record *record
}

// running reports whether the run has not ended.
func (r Run) running() bool { return r.record != nil && r.record.run == r.number }

// Start starts the lowest record that may start at the given time (milliseconds since
// 1970, the clock that Again was given). It returns false if there is none, or no room
// for one in the metadata; see Paused and Commit.
func (t *Tracker) Start(now int64) (Run, bool) {
	t.wake(now)
	from := t.startable()
	if from == nil {
		return Run{}, false
	}
	r := from.pop()
	t.runs++
	t.running++
	r.run = t.runs
	run := Run{Offset: r.offset, number: r.run, record: r}
	if r.note == nil {
		t.space.reserve(r.keyed)
		t.started = max(t.started, r.offset+1)
		return run, true
	}
	run.Crashes, run.Counts = r.note.crashes, r.note.counts
	return run, true
}

// Startable is how many records wait only for a commit, or for somebody to start them.
func (t *Tracker) Startable() int { return len(t.ready) + len(t.granted) + len(t.fresh) + len(t.alone) }

// Foremost is the offset of the lowest of these. It returns false if there is none.
func (t *Tracker) Foremost() (offset int64, ok bool) {
	for _, waiting := range []*ordered{&t.ready, &t.granted, &t.fresh, &t.alone} {
		if r := waiting.lowest(); r != nil && (!ok || r.offset < offset) {
			offset, ok = r.offset, true
		}
	}
	return offset, ok
}

// startable returns the queue whose first record is the next to start, nil if none may
// start.
func (t *Tracker) startable() *ordered {
	granted, ready := t.granted.lowest(), t.ready.lowest()
	switch {
	case ready != nil && (granted == nil || ready.offset < granted.offset) && t.fits(ready):
		return &t.ready
	case granted != nil:
		return &t.granted
	}
	return nil
}

// Wake returns the earliest time at which a record that waits in its place may start.
// It returns false if none waits for a time.
func (t *Tracker) Wake() (due int64, ok bool) {
	if len(t.later) == 0 {
		return 0, false
	}
	return t.later[0].due, true
}

// queue puts a record that waits, and is the first of its key, where it belongs.
func (t *Tracker) queue(r *record) {
	switch {
	case r.note != nil && r.note.due > 0:
		t.later.push(later{r.note.due, r})
	case r.note != nil || r.offset < t.crashed:
		t.alone.push(r)
	case r.offset < t.mark:
		t.ready.push(r)
	default:
		t.fresh.push(r)
	}
}

// wake moves those whose time has come to where they wait for their start.
func (t *Tracker) wake(now int64) {
	for len(t.later) > 0 && t.later[0].due <= now {
		r := t.later.pop()
		r.note.due = 0
		t.alone.push(r)
	}
}

// fits reports whether the record may be started, or have its start put on record:
// whatever comes of it, and of all that run, the metadata has room.
func (t *Tracker) fits(r *record) bool {
	return t.space.fits(r.keyed, r == t.records.lowest)
}
