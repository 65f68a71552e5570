package embedded

import (
	"cmp"
	"context"
	"time"
)

const (
	// takeoverEvery is how often a dead worker's jobs are looked for.
	takeoverEvery = 500 * time.Millisecond
	// retryEvery is how often publishing calls that wait for room or for another's
	// claim are tried again.
	retryEvery = 50 * time.Millisecond
	// idleLook is how often the writer looks at all.
	idleLook = time.Minute
)

// nextLook is how long after the last look the next is due.
func (w *writer) nextLook() time.Duration {
	next := idleLook
	if w.upkeep.wrote {
		next = upkeepEvery
	}
	waiting := w.store.promoters.any()
	if len(w.standby.receptions) > 0 {
		next, waiting = min(next, cmp.Or(w.store.in.lookEvery, takeoverEvery)), true
	}
	if len(w.standby.publications) > 0 {
		next, waiting = min(next, retryEvery), true
	}
	if poll := w.store.waker.interval(); poll > 0 && waiting {
		next = min(next, poll)
	}
	return next
}

// look finds out, by reading alone, whether what stands by should be tried again:
// a transaction that finds nothing would keep other processes waiting.
func (w *writer) look() {
	now := time.Now()
	w.looked = now
	if w.changedElsewhere() {
		w.store.promoters.tellAll()
		w.standby.due = w.standby.due || len(w.standby.publications) > 0 || w.anyReady()
	}
	if w.store.closing.Err() != nil {
		w.standby.sendAway(w)
	}
	if len(w.standby.publications) > 0 {
		w.standby.due = true
	}
	if len(w.standby.receptions) > 0 && now.Sub(w.upkeep.tookOver) >= takeoverEvery {
		w.upkeep.tookOver = now
		w.standby.due = w.standby.due || w.anyLapsed()
	}
	w.keepUp(now)
}

// changedElsewhere reports whether another connection has written since it was
// last asked.
func (w *writer) changedElsewhere() bool {
	var version int64
	if !w.read("pragma data_version", nil, &version) {
		return false
	}
	changed := version != w.upkeep.version
	w.upkeep.version = version
	return changed
}

// anyReady reports whether a lane of a waiting reception has work.
func (w *writer) anyReady() bool {
	for _, r := range w.standby.receptions {
		for _, lane := range r.lanes {
			if w.read("select 1 from ready where q = ? limit 1", []any{lane}) {
				return true
			}
		}
	}
	return false
}

// anyLapsed reports whether a lane of a waiting reception has jobs of a dead
// worker, or jobs to promote.
func (w *writer) anyLapsed() bool {
	lanes := make(map[int64]bool)
	for _, r := range w.standby.receptions {
		for _, lane := range r.lanes {
			lanes[lane] = true
		}
	}
	found := false
	_ = w.conn.query(context.Background(), "select distinct q from running where lease <= ?", []any{w.store.in.now()}, func(r row) error {
		var q int64
		err := r.scan(&q)
		found = found || lanes[q]
		return err
	})
	return found || !w.store.ownDelays() && w.anyDue()
}

// anyDue reports whether jobs of our own are due that nobody promotes.
func (w *writer) anyDue() bool {
	return w.read("select 1 from held where scope = 0 and behind = 0 and due <= ? limit 1", []any{w.store.in.now()})
}

// read reads one row outside a transaction. What it cannot read now, the next look
// will.
func (w *writer) read(query string, args []any, into ...any) bool {
	found, err := w.conn.row(context.Background(), query, args, into...)
	return err == nil && found
}
