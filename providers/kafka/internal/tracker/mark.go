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
	for _, waiting := range []*ordered{&t.ready, &t.fresh} {
		if r := waiting.lowest(); r != nil {
			next = min(next, r.offset)
		}
	}
	if next == t.next {
		return mark
	}
	return max(mark, min(t.next, next+int64(t.config.Chunk)))
}

// grant takes those of the records that wait for a start of their own which would be
// among the next n to start, and notes that they may be running.
func (t *Tracker) grant(n int) []*record {
	n -= len(t.granted)
	var starts []*record
	for len(starts) < n {
		r := t.alone.lowest()
		if r == nil {
			break
		}
		if other := t.ready.lowest(); other != nil && other.offset < r.offset && t.fits(other) && len(t.ready)+len(starts) >= n {
			break
		}
		if r.note == nil {
			if !t.fits(r) {
				break
			}
			t.space.reserve(r.keyed)
			t.noted(r)
		}
		r.note.open = true
		starts = append(starts, t.alone.pop())
	}
	return starts
}
