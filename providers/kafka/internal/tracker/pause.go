package tracker

// Pause is why a partition takes no more.
type Pause int

const (
	// NotPaused: it goes on.
	NotPaused Pause = iota
	// WindowFull: no more records fit between the lowest unsettled one and the last.
	WindowFull
	// MetadataFull: what is settled out of order, waits or runs leaves no room in the
	// commit's metadata for another run.
	MetadataFull
)

// Paused says why the partition takes no more records, or starts none, until some of
// those that it has are settled.
func (t *Tracker) Paused() Pause {
	if r := t.records.lowest; r != nil && max(t.next, t.beyond)-r.offset >= int64(t.config.Window) {
		return WindowFull
	}
	if t.startable() != nil {
		return NotPaused
	}
	for _, waiting := range []*ordered{&t.ready, &t.alone} {
		if r := waiting.lowest(); r != nil && r.note == nil && !t.fits(r) {
			return MetadataFull
		}
	}
	return NotPaused
}
