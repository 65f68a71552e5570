package tracker

import (
	"cmp"
	"slices"
)

// The most that a note can say. What is more is not counted.

const (
	mostCrashes   = 1<<7 - 1
	mostHandovers = 1<<3 - 1
	mostFailures  = 1<<21 - 1
	mostPutOff    = 1<<14 - 1
	latestDue     = 1<<42 - 1
)

// note is what is known of a record of which mark and crash line do not tell enough.
type note struct {
	offset    int64
	open      bool // it may be running
	keyed     bool
	handovers int32 // how often it was handed over while it ran, since that last counted as a crash
	crashes   int32
	counts    Counts
	due       int64
}

// crash counts a crash if the record may be running.
func (n *note) crash() {
	if n.open {
		n.open = false
		n.crashes = min(n.crashes+1, mostCrashes)
	}
}

// handOver counts a handing over, and each eighth as a crash.
func (n *note) handOver() {
	n.open = false
	if n.handovers++; n.handovers > mostHandovers {
		n.handovers = 0
		n.crashes = min(n.crashes+1, mostCrashes)
	}
}

func (c Counts) bounded() Counts {
	return Counts{
		Failures: max(0, min(c.Failures, mostFailures)),
		Snoozes:  max(0, min(c.Snoozes, mostPutOff)),
		Parks:    max(0, min(c.Parks, mostPutOff)),
	}
}

// notes are sorted by offset.
type notes []*note

// find returns the note on a record, nil if there is none.
func (ns notes) find(offset int64) *note {
	if i, ok := ns.search(offset); ok {
		return ns[i]
	}
	return nil
}

func (ns notes) search(offset int64) (int, bool) {
	return slices.BinarySearchFunc(ns, offset, func(n *note, at int64) int { return cmp.Compare(n.offset, at) })
}

// add puts in a note on a record that has none.
func (ns *notes) add(n *note) {
	i, _ := ns.search(n.offset)
	*ns = slices.Insert(*ns, i, n)
}

func (ns *notes) remove(n *note) { ns.cut(n.offset, n.offset+1) }

// cut takes out the notes on the offsets from one to another, which is not among them.
func (ns *notes) cut(from, to int64) []*note {
	i, _ := ns.search(from)
	j, _ := ns.search(to)
	if i == j {
		return nil
	}
	out := slices.Clone((*ns)[i:j])
	*ns = slices.Delete(*ns, i, j)
	return out
}

func (ns notes) values() []note {
	list := make([]note, len(ns))
	for i, n := range ns {
		list[i] = *n
	}
	return list
}
