package tracker

// The most bytes that one thing takes in the metadata. An offset is written as the
// distance from the one before. All are less than two windows, one of them the mark's
// chunk, from the committed one.
const (
	widestWindow = 1 << 27
	widestSpan   = 2*widestWindow - 1
	spanSpace    = 4
	headSpace    = ownerSpace + 3*spanSpace + sumSpace // owner, crash line, mark, number of intervals
	settledSpace = spanSpace + 1                       // a record settled: a distance, and a length that grows by a byte or is one
	plainSpace   = spanSpace + 1 + 1                   // a note: distance, flags, crashes
	keyedSpace   = plainSpace + 3 + 2 + 2 + 6          // the same with failures, snoozes, parks and due
)

// space is the account of the metadata's bytes, before they are made text.
type space struct {
	bound    int
	settled  int // of the intervals, at most
	reserved int // of the notes, and of what runs without one
}

func newSpace(metadata int) space {
	return space{bound: rawSpace(metadata) - headSpace}
}

func (s *space) reserve(keyed bool) { s.reserved += noteSpace(keyed) }
func (s *space) release(keyed bool) { s.reserved -= noteSpace(keyed) }

func noteSpace(keyed bool) int {
	if keyed {
		return keyedSpace
	}
	return plainSpace
}

// measure replaces the estimate of the intervals by what they take.
func (s *space) measure(in *intervals) { s.settled = in.size() }

// fits reports whether there is room for one more note. The lowest unsettled record
// has a place of its own, so that it can always start: nothing else makes room.
func (s *space) fits(keyed, lowest bool) bool {
	need := s.settled + s.reserved + noteSpace(keyed)
	if !lowest {
		need += keyedSpace
	}
	return need <= s.bound
}

// sound reports whether the lowest record can start.
func (s *space) sound() bool { return s.settled+s.reserved <= s.bound }
