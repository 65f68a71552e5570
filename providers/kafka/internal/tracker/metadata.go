package tracker

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"strings"
)

// The errors of metadata that cannot be used.
var (
	// ErrForeign: somebody else wrote it, it belongs to another offset, or it is
	// damaged or cut off.
	ErrForeign = errors.New("commit metadata is not ours or damaged")
	// ErrNewer: a newer version of this package wrote it.
	ErrNewer = errors.New("commit metadata is of a newer version")
	// ErrBound: it was written under a larger bound and leaves no room under this one.
	ErrBound = errors.New("commit metadata leaves no room under its bound")
)

// Metadata is text: a letter code, the version's letter, and in base64 the state and a
// checksum over all that, the offset included. Later versions keep this frame, so that
// one is told apart from a text that only begins like ours.
//
// The state, all numbers as varints, offsets as the distance from the one before (the
// committed offset, for the first):
//
//	owner (four bytes), crash line, mark
//	number of intervals; for each its distance from the end of the one before, its length
//	for each note its distance, a byte of flags, and what the flags say is there
const (
	frame   = "bkst"
	version = 'A'
)

const (
	flagOpen = 1 << iota
	flagKeyed
	flagCrashes
	flagCounts
	flagDue
	flagHandovers // three bits
)

const (
	ownerSpace = 4
	sumSpace   = 4
)

// rawSpace is how many bytes of state and checksum fit into so many bytes of text.
func rawSpace(text int) int {
	return base64.RawStdEncoding.DecodedLen(text - len(frame) - 1)
}

// state is what a commit has on record.
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
	b = binary.LittleEndian.AppendUint32(b, sum(version, s.offset, b))
	text := make([]byte, len(frame)+1, len(frame)+1+base64.RawStdEncoding.EncodedLen(len(b)))
	copy(text, frame)
	text[len(frame)] = version
	return string(base64.RawStdEncoding.AppendEncode(text, b))
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

func sum(version byte, offset int64, state []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	head := append([]byte(frame), version)
	head = binary.LittleEndian.AppendUint64(head, uint64(offset))
	return crc32.Update(crc32.Checksum(head, table), table, state)
}

func decode(offset int64, metadata string) (state, error) {
	rest, ok := strings.CutPrefix(metadata, frame)
	if !ok || rest == "" {
		return state{}, ErrForeign
	}
	of := rest[0]
	b, err := base64.RawStdEncoding.Strict().DecodeString(rest[1:])
	if err != nil || len(b) < sumSpace {
		return state{}, ErrForeign
	}
	b, end := b[:len(b)-sumSpace], b[len(b)-sumSpace:]
	if binary.LittleEndian.Uint32(end) != sum(of, offset, b) || of < version {
		return state{}, ErrForeign
	}
	if of > version {
		return state{}, ErrNewer
	}
	s, ok := decodeState(offset, b)
	if !ok || s.encode() != metadata {
		return state{}, ErrForeign
	}
	return s, nil
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
		s.settled = append(s.settled, interval{from, to})
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
