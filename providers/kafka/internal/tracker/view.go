package tracker

// Ahead replaces Config.Chunk from the next commit on: how many records the mark is
// moved ahead of the next start. With 0 it is not moved at all, and a crash counts for
// nothing that was not started.
func (t *Tracker) Ahead(records int) { t.config.Chunk = max(0, min(records, t.config.Window)) }

// CrashLine is the offset below which records may have been running when a worker died.
func (t *Tracker) CrashLine() int64 { return t.crashed }

// Startable is how many records wait only for a commit, or for somebody to start them.
func (t *Tracker) Startable() int { return len(t.ready) + len(t.granted) + len(t.fresh) + len(t.alone) }

// Foremost is the offset of the lowest of these. It returns false if there is none.
func (t *Tracker) Foremost() (offset int64, ok bool) {
	for _, waiting := range []*ordered{&t.ready, &t.granted, &t.fresh, &t.alone} {
		if seq, some := waiting.lowest(); some {
			if at := t.records.at(seq).offset; !ok || at < offset {
				offset, ok = at, true
			}
		}
	}
	return offset, ok
}

// Left reports whether it is on record that the partition is handed over, and nothing
// was settled after that.
func (t *Tracker) Left() bool { return t.leaving && t.flight == nil && !t.changed }

// Runs returns the offsets of the records that are running, in order.
func (t *Tracker) Runs() []int64 {
	offsets := make([]int64, 0, t.running)
	t.records.each(func(r *record) {
		if r.run != 0 {
			offsets = append(offsets, r.offset)
		}
	})
	return offsets
}
