package tracker

import (
	"cmp"
	"slices"
)

// Leave begins to hand the partition over: nothing is started any more, and the commits
// from now on say of what still runs that it was handed over. Runs may still be settled
// as long as commits are accepted.
func (t *Tracker) Leave() {
	if t.leaving {
		return
	}
	t.leaving = true
	t.changed = true
	t.mark = t.crashed
	for len(t.ready) > 0 {
		t.queue(t.ready.pop())
	}
	t.ask(t.granted)
	t.granted = nil
}

// Resume says that the partition has come back, and what is on record for it. It reports
// whether nobody else has had it meanwhile, so that the tracker and its runs go on: who
// starts anything has committed before. If false, the tracker is of no use any more, and
// neither are its runs; Load makes a new one.
//
// Starts go on with the next commit that is accepted.
func (t *Tracker) Resume(offset int64, metadata string) bool {
	if f := t.flight; f != nil {
		t.Unknown(f.Number)
	}
	for _, c := range slices.Concat(t.doubts, []Commit{t.last}) {
		if c.Offset != offset || c.Metadata != metadata {
			continue
		}
		t.Leave()
		t.leaving = false
		t.accept(c)
		t.changed = true
		return true
	}
	return false
}

// Left reports whether it is on record that the partition is handed over, and nothing
// was settled after that.
func (t *Tracker) Left() bool { return t.leaving && t.flight == nil && !t.changed }

// handedOver returns the notes as they are left to the next owner: what runs was handed
// over once more.
func (t *Tracker) handedOver() []note {
	list := t.notes.values()
	for r := t.records.lowest; r != nil; r = r.higher {
		if r.run == 0 {
			continue
		}
		n := note{offset: r.offset, keyed: r.keyed}
		if r.note != nil {
			n = *r.note
		}
		n.handOver()
		i, noted := slices.BinarySearchFunc(list, n.offset, func(n note, at int64) int { return cmp.Compare(n.offset, at) })
		if noted {
			list[i] = n
		} else {
			list = slices.Insert(list, i, n)
		}
	}
	return list
}
