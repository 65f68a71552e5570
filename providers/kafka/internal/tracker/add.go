package tracker

// Added is what becomes of a record that was added.
type Added int

const (
	// Kept: the record waits for its start. The caller keeps its bytes until it is
	// settled.
	Kept Added = iota + 1
	// Dropped: it is settled, or was added before. There is nothing to do.
	Dropped
	// Full: the window has no room. The record was not added; it may be when others
	// have been settled.
	Full
)

// Next is the offset from which on records are to be fetched.
func (t *Tracker) Next() int64 { return t.next }

// Add takes note of a record that was fetched, with its ordering key, if any. Records
// are added in the order of their offsets; offsets that are left out hold no record.
func (t *Tracker) Add(offset int64, key string) Added {
	if offset < t.next {
		return Dropped
	}
	if r := t.records.lowest; r != nil && offset-r.offset >= int64(t.config.Window) {
		t.beyond = offset
		return Full
	}
	t.forget(t.next, offset)
	before := t.next - 1
	t.next = offset
	if t.advance(); t.next > offset {
		return Dropped
	}
	t.next++
	n := t.notes.find(offset)
	r := t.records.push(record{offset: offset, before: before, note: n, keyed: key != ""})
	t.advance()
	if n != nil && r.keyed && !n.keyed {
		n.keyed = true
		t.space.reserved += keyedSpace - plainSpace
	}
	if r.keyed && t.lines.join(r, key) {
		return Kept
	}
	r.crashed = offset < t.crashed
	t.queue(r)
	return Kept
}

// Lost is what a gap in the log took with it.
type Lost struct {
	// From and To bound the offsets that are gone, To not included. Both are 0 if
	// none is.
	From, To int64
	// Unsettled is how many of them may have held a record that was not settled.
	Unsettled int64
}

// Skip says that the log begins at the given offset: what is below and was not added
// is gone. Records that were added stay: the caller has their bytes.
func (t *Tracker) Skip(to int64) Lost {
	if to <= t.next {
		return Lost{}
	}
	lost := Lost{From: t.next, To: to, Unsettled: to - t.next - t.settled.within(t.next, to)}
	t.forget(t.next, to)
	t.next = to
	t.advance()
	t.changed = true
	return lost
}

// forget drops the notes on records that do not exist.
func (t *Tracker) forget(from, to int64) {
	for _, n := range t.notes.cut(from, to) {
		t.space.release(n.keyed)
	}
}
