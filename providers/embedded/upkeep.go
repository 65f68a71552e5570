package embedded

import (
	"context"
	"time"
)

const (
	// upkeepEvery is how often a file that was written to is tidied.
	upkeepEvery = time.Second
	// freePages is how many free pages a file may keep for what comes next.
	freePages = 2000
	// freeStep is how many are given back at once: some tens of milliseconds.
	freeStep = "pragma incremental_vacuum(500)"
	// claimStep is how many expired claims are removed at once.
	claimStep = 500
)

const sqlDropClaims = `delete from claim where (scope, key) in
	(select scope, key from claim where until <= ? limit ?)`

// upkeep is what the writer does for the file in between.
type upkeep struct {
	wrote    bool // since the last time
	last     time.Time
	tookOver time.Time
	version  int64 // of the data, as another connection would change it
}

// keepUp does one step of each.
func (w *writer) keepUp(now time.Time) {
	if !w.upkeep.wrote || now.Sub(w.upkeep.last) < upkeepEvery {
		return
	}
	w.upkeep.last = now
	var free, expired int64
	w.read("pragma freelist_count", nil, &free)
	w.read("select count(*) from (select 1 from claim where until <= ? limit ?)", []any{w.store.in.now(), claimStep}, &expired)
	w.upkeep.wrote = free > freePages || expired > 0
	if !w.upkeep.wrote || w.enter() != nil {
		return
	}
	defer w.turn.leave()
	if free > freePages {
		_, _ = w.conn.exec(context.Background(), freeStep)
	}
	if expired > 0 {
		_, _ = w.conn.exec(context.Background(), sqlDropClaims, w.store.in.now(), claimStep)
	}
}
