package tracker

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// interval are the offsets from one to another, which is not in it.
type interval struct {
	from, to int64
	before   int64 // the offset of the record before the first
}

// intervals are what is settled ahead of the lowest unsettled record, sorted. They do
// not touch each other.
type intervals []interval

// add puts in one offset. That of the record before it is given, so that offsets without
// a record do not keep intervals apart.
func (in *intervals) add(offset, before int64) {
	list := *in
	i := list.above(offset)
	left := i > 0 && (list[i-1].to == offset || list[i-1].to == before+1)
	right := i < len(list) && (list[i].from == offset+1 || list[i].before == offset)
	switch {
	case left && right:
		list[i-1].to = list[i].to
		*in = slices.Delete(list, i, i+1)
	case left:
		list[i-1].to = offset + 1
	case right:
		list[i].from, list[i].before = offset, before
	default:
		*in = slices.Insert(list, i, interval{offset, offset + 1, before})
	}
}

// above returns the index of the first interval that begins above the offset.
func (in intervals) above(offset int64) int {
	i, _ := slices.BinarySearchFunc(in, offset+1, func(v interval, at int64) int { return cmp.Compare(v.from, at) })
	return i
}

// past returns the offset, or, if it is in an interval, the end of that.
func (in intervals) past(offset int64) int64 {
	if i := in.above(offset); i > 0 {
		return max(offset, in[i-1].to)
	}
	return offset
}

// drop takes out what is below the offset.
func (in *intervals) drop(offset int64) {
	n := 0
	for n < len(*in) && (*in)[n].to <= offset {
		n++
	}
	*in = slices.Delete(*in, 0, n)
}

// within is how many of the offsets from one to another, which does not count, are in
// an interval.
func (in intervals) within(from, to int64) (n int64) {
	for _, v := range in {
		n += max(0, min(v.to, to)-max(v.from, from))
	}
	return n
}

// size is how many bytes the intervals take, their distances at their widest.
func (in intervals) size() int {
	var b [binary.MaxVarintLen64]byte
	n := 0
	for i, v := range in {
		n += binary.PutUvarint(b[:], uint64(v.to-v.from))
		if i > 0 {
			n += binary.PutUvarint(b[:], uint64(v.from-in[i-1].to))
		} else {
			n += spanSpace
		}
	}
	return n
}
