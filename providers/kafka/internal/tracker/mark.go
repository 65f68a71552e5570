package tracker

// Ahead replaces Config.Chunk from the next commit on: how many records the mark is
// moved ahead of the next start. With 0 it is not moved at all.
func (t *Tracker) Ahead(records int) { t.config.Chunk = max(0, min(records, t.config.Window)) }

// CrashLine is the offset below which records may have been running when a worker died.
func (t *Tracker) CrashLine() int64 { return t.crashed }

// nextMark is where the mark is to be: a chunk ahead of the next start, not past the last
// record, and above all that was started.
func (t *Tracker) nextMark() int64 {
	mark := max(t.mark, t.started)
	next := t.next
	if seq, ok := t.ready.lowest(); ok {
		next = t.records.at(seq).offset
	}
	if seq, ok := t.fresh.lowest(); ok {
		next = min(next, t.records.at(seq).offset)
	}
	if next == t.next {
		return mark
	}
	return max(mark, min(t.next, next+int64(t.config.Chunk)))
}

// grant takes those of the records that wait for a start of their own which would be
// among the next n to start, and notes that they may be running.
func (t *Tracker) grant(n int) []int64 {
	n -= len(t.granted)
	var starts []int64
	for len(starts) < n {
		seq, ok := t.alone.lowest()
		if !ok {
			break
		}
		if other, ok := t.ready.lowest(); ok && other < seq && t.fits(t.records.at(other)) && len(t.ready)+len(starts) >= n {
			break
		}
		r := t.records.at(seq)
		if r.note == nil {
			if !t.fits(r) {
				break
			}
			t.space.reserve(r.keyed)
			t.noted(r)
		}
		r.note.open = true
		t.alone.pop()
		starts = append(starts, seq)
	}
	return starts
}
