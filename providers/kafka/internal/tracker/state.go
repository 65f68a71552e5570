package tracker

import (
	"encoding/binary"
	"math"
)

const ownerSpace = 4

// The flags of a note.
const (
	flagOpen = 1 << iota
	flagKeyed
	flagCrashes
	flagCounts
	flagDue
	flagHandovers // three bits
)

// state is what a commit has on record. All its numbers are varints but the owner, which
// has four bytes; offsets are the distance from the one before, the first from the
// committed one:
//
//	owner, crash line, mark
//	how many intervals; of each its distance from the end of the one before, its length
//	of each note its distance, a byte of flags, and what these say is there
type state struct {
	owner                 uint32
	offset, crashed, mark int64
	settled               intervals
	notes                 []note
}

func (s *state) encode() string {
	crashed := max(s.crashed, s.offset)
	b := make([]byte, 0, 64+s.settled.size()+len(s.notes)*keyedSpace)
	b = binary.LittleEndian.AppendUint32(b, s.owner)
	b = binary.AppendUvarint(b, uint64(crashed-s.offset))
	b = binary.AppendUvarint(b, uint64(max(s.mark, crashed)-crashed))
	b = binary.AppendUvarint(b, uint64(len(s.settled)))
	at := s.offset
	for _, v := range s.settled {
		b = binary.AppendUvarint(b, uint64(v.from-at))
		b = binary.AppendUvarint(b, uint64(v.to-v.from))
		at = v.to
	}
	at = s.offset
	for i := range s.notes {
		n := &s.notes[i]
		b = binary.AppendUvarint(b, uint64(n.offset-at))
		b = n.append(b)
		at = n.offset
	}
	return seal(s.offset, b)
}

func (n *note) append(b []byte) []byte {
	flags := byte(n.handovers) * flagHandovers
	for _, f := range []struct {
		flag byte
		on   bool
	}{
		{flagOpen, n.open}, {flagKeyed, n.keyed}, {flagCrashes, n.crashes > 0},
		{flagCounts, n.counts != Counts{}}, {flagDue, n.due > 0},
	} {
		if f.on {
			flags |= f.flag
		}
	}
	b = append(b, flags)
	if flags&flagCrashes != 0 {
		b = binary.AppendUvarint(b, uint64(n.crashes))
	}
	if flags&flagCounts != 0 {
		b = binary.AppendUvarint(b, uint64(n.counts.Failures))
		b = binary.AppendUvarint(b, uint64(n.counts.Snoozes))
		b = binary.AppendUvarint(b, uint64(n.counts.Parks))
	}
	if flags&flagDue != 0 {
		b = binary.AppendUvarint(b, uint64(n.due))
	}
	return b
}

func decodeState(offset int64, b []byte) (state, bool) {
	r := reader{b: b, ok: offset >= 0 && offset < math.MaxInt64/2}
	s := state{owner: r.owner(), offset: offset}
	s.crashed = offset + r.span()
	s.mark = s.crashed + r.span()
	at := offset
	for n := r.span(); n > 0 && r.ok; n-- {
		from := at + r.span()
		to := from + r.span()
		r.ok = r.ok && at < from && from < to
		s.settled = append(s.settled, interval{from, to, from - 1})
		at = to
	}
	end := at
	at = offset
	for len(r.b) > 0 && r.ok {
		n := r.note(at)
		r.ok = r.ok && (n.offset > at || len(s.notes) == 0) && s.settled.past(n.offset) == n.offset
		at = n.offset
		s.notes = append(s.notes, n)
	}
	return s, r.ok && max(at, end, s.mark)-offset <= widestSpan
}

// reader takes numbers from the front of a state. After what is not there, or too
// large, nothing is ok.
type reader struct {
	b  []byte
	ok bool
}

func (r *reader) span() int64 { return r.number(widestSpan) }

func (r *reader) owner() uint32 {
	if len(r.b) < ownerSpace {
		r.ok, r.b = false, nil
		return 0
	}
	v := binary.LittleEndian.Uint32(r.b)
	r.b = r.b[ownerSpace:]
	return v
}

func (r *reader) number(most int64) int64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > uint64(most) {
		r.ok, r.b = false, nil
		return 0
	}
	r.b = r.b[n:]
	return int64(v)
}

func (r *reader) note(after int64) note {
	n := note{offset: after + r.span()}
	if len(r.b) == 0 {
		r.ok = false
		return n
	}
	flags := r.b[0]
	r.b = r.b[1:]
	n.open = flags&flagOpen != 0
	n.keyed = flags&flagKeyed != 0
	n.handovers = int32(flags / flagHandovers)
	if flags&flagCrashes != 0 {
		n.crashes = int32(r.number(mostCrashes))
	}
	if flags&flagCounts != 0 {
		n.counts.Failures = int32(r.number(mostFailures))
		n.counts.Snoozes = int32(r.number(mostPutOff))
		n.counts.Parks = int32(r.number(mostPutOff))
	}
	if flags&flagDue != 0 {
		n.due = r.number(latestDue)
	}
	return n
}
