package tracker

// Commit is what the group has to commit for the partition.
type Commit struct {
	// Number counts the commits of a tracker, from 1.
	Number int64
	// Offset is the one to commit.
	Offset int64
	// Metadata goes with it, at most Config.Metadata bytes of ASCII.
	Metadata string
}

// flight is a commit on its way.
type flight struct {
	Commit
	mark   int64
	starts []*record // records that get a start of their own on record
}

// Commit returns the next commit, if there is anything to say and the one before has
// been answered. Its answer goes to Accepted, Refused or Unknown, in any case.
//
// The caller says how many records it could start now, and what time it is: records
// whose starts are put on record one by one get theirs in this commit, at most that
// many, and should be started when it is accepted.
func (t *Tracker) Commit(now int64, slots int) (Commit, bool) {
	if t.flight != nil {
		return Commit{}, false
	}
	t.wake(now)
	mark, starts := t.mark, []*record(nil)
	if !t.leaving {
		mark, starts = t.nextMark(), t.grant(slots)
	}
	short := mark > max(t.mark, t.started) && len(t.ready)+len(t.granted)+len(starts) < slots
	if !t.changed && len(starts) == 0 && !short {
		return Commit{}, false
	}
	t.number++
	t.changed = false
	t.flight = &flight{Commit: t.write(mark), mark: mark, starts: starts}
	return t.flight.Commit, true
}

// write makes a commit of what the tracker knows.
func (t *Tracker) write(mark int64) Commit {
	s := state{owner: t.config.Owner, offset: t.base(), crashed: t.crashed, mark: mark, settled: t.settled}
	if t.leaving {
		s.mark = t.crashed
		s.notes = t.handedOver()
	} else {
		s.notes = t.notes.values()
	}
	t.space.measure(&t.settled)
	return Commit{Number: t.number, Offset: s.offset, Metadata: s.encode()}
}

// Accepted says that the commit with this number is on record.
func (t *Tracker) Accepted(number int64) {
	f := t.answered(number)
	if f == nil {
		return
	}
	t.accept(f.Commit)
	if t.leaving {
		t.ask(f.starts)
		return
	}
	t.mark = f.mark
	for r := t.fresh.lowest(); r != nil && r.offset < t.mark; r = t.fresh.lowest() {
		t.ready.push(t.fresh.pop())
	}
	for _, r := range f.starts {
		t.granted.push(r)
	}
}

// Refused says that the commit with this number is not on record and never will be. All
// that it said goes into the next one.
func (t *Tracker) Refused(number int64) {
	if f := t.answered(number); f != nil {
		t.changed = true
		t.ask(f.starts)
	}
}

// Unknown says that the commit with this number may be on record or not. All that it
// said goes into the next one. The caller sees to it that it cannot arrive after a later
// one: with a new generation, or over the same connection.
func (t *Tracker) Unknown(number int64) {
	if f := t.answered(number); f != nil {
		t.changed = true
		t.ask(f.starts)
		t.doubt(f.Commit)
	}
}

// ask takes back that the starts of these records are on record, or about to be.
func (t *Tracker) ask(starts []*record) {
	for _, r := range starts {
		r.note.open = false
		t.alone.push(r)
	}
}

// answered returns the commit on its way, if it has this number; it is no longer.
func (t *Tracker) answered(number int64) *flight {
	f := t.flight
	if f == nil || f.Number != number {
		return nil
	}
	t.flight = nil
	return f
}

// accept takes note that a commit is on record. Who waited for what it says may start.
func (t *Tracker) accept(c Commit) {
	t.last = c
	t.doubts = nil
	t.final = c.Number
	t.lines.settle(c.Number, t.queue)
}

// doubt keeps a commit that may be on record. Of many in a row only the last are kept:
// for another, Resume does not know the record, which is the safe side.
func (t *Tracker) doubt(c Commit) {
	const most = 8
	if len(t.doubts) == most {
		t.doubts = t.doubts[1:]
	}
	t.doubts = append(t.doubts, c)
}

// Committed is the offset of the last commit that was accepted, or the one that the
// tracker began with: everything below is settled.
func (t *Tracker) Committed() int64 { return t.last.Offset }
