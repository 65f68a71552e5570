package kafka

import "time"

// pace is how fast records of a partition are started, which says how far ahead of them
// the mark is to be. It is not ahead at all while starts are few or commits far apart: then
// each start is put on record as it comes, and a crash counts for nothing that was not
// started.
type pace struct {
	starts int       // since the last commit
	before int       // between that and the one before
	last   time.Time // when the last one was on record
}

// brisk is how soon a commit follows another while there is much to do.
const brisk = 5 * time.Millisecond

// few is how many starts can well wait for commits of their own.
const few = 8

// ahead is how many records the mark is to be ahead of the next start: about twice as
// many as are started between two commits, unless those are few.
func (p *pace) ahead(now time.Time, most int) int {
	starts := max(p.starts, p.before)
	if starts < few || now.Sub(p.last) > brisk {
		return 0
	}
	return min(2*starts, most)
}

// committed takes note that a commit is on record.
func (p *pace) committed(now time.Time) {
	if now.Sub(p.last) > brisk {
		p.starts = 0
	}
	p.before, p.starts, p.last = p.starts, 0, now
}
