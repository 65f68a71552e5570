package tracker

import (
	"cmp"
	"slices"
)

// ordered is a heap of records, the lowest first.
type ordered []*record

// lowest returns the first of them, nil if there is none.
func (o ordered) lowest() *record {
	if len(o) == 0 {
		return nil
	}
	return o[0]
}

func (o *ordered) push(r *record) {
	h := append(*o, r)
	i := len(h) - 1
	for i > 0 && h[(i-1)/2].offset > r.offset {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = r
	*o = h
}

// pop takes out the first of them, which must be there.
func (o *ordered) pop() *record {
	h := *o
	n := len(h) - 1
	top, last := h[0], h[n]
	h[n] = nil
	h = h[:n]
	*o = h
	i := 0
	for {
		child := 2*i + 1
		if child+1 < n && h[child+1].offset < h[child].offset {
			child++
		}
		if child >= n || h[child].offset >= last.offset {
			break
		}
		h[i] = h[child]
		i = child
	}
	if n > 0 {
		h[i] = last
	}
	return top
}

// later is a record that waits for its time.
type later struct {
	due    int64
	record *record
}

// laters are sorted, the earliest first. They are few: each has a note.
type laters []later

func (ls *laters) push(l later) {
	i, _ := slices.BinarySearchFunc(*ls, l, func(a, b later) int { return cmp.Compare(a.due, b.due) })
	*ls = slices.Insert(*ls, i, l)
}

// pop takes out the first of them, which must be there.
func (ls *laters) pop() *record {
	r := (*ls)[0].record
	*ls = slices.Delete(*ls, 0, 1)
	return r
}
