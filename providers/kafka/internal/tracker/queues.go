package tracker

import (
	"cmp"
	"slices"
)

// ordered is a heap of records, the lowest first.
type ordered []int64

func (o ordered) lowest() (int64, bool) {
	if len(o) == 0 {
		return 0, false
	}
	return o[0], true
}

func (o *ordered) push(seq int64) {
	h := append(*o, seq)
	i := len(h) - 1
	for i > 0 && h[(i-1)/2] > seq {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = seq
	*o = h
}

func (o *ordered) pop() (int64, bool) {
	h := *o
	if len(h) == 0 {
		return 0, false
	}
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*o = h
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if child >= len(h) || h[child] >= last {
			break
		}
		h[i] = h[child]
		i = child
	}
	if len(h) > 0 {
		h[i] = last
	}
	return top, true
}

// later is a record that waits for its time.
type later struct{ due, seq int64 }

// laters are sorted, the earliest first. They are few: each has a note.
type laters []later

func (ls *laters) push(l later) {
	i, _ := slices.BinarySearchFunc(*ls, l, func(a, b later) int { return cmp.Compare(a.due, b.due) })
	*ls = slices.Insert(*ls, i, l)
}

func (ls *laters) pop() later {
	l := (*ls)[0]
	*ls = slices.Delete(*ls, 0, 1)
	return l
}
