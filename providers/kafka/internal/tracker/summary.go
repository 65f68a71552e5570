package tracker

// Summary is what a commit says of a partition, for those who only look at it.
type Summary struct {
	// Settled is how many offsets at or above the committed one are settled.
	Settled int64
	// Mark is the offset below which records may have been started.
	Mark int64
	// Later is how many records wait in their place for a time that is not reached.
	Later int64

	settled intervals
}

// Read returns what a commit says that is on record, at a time in milliseconds since
// 1970. Its errors are those of Load; empty metadata says nothing but the offset.
func Read(offset int64, metadata string, now int64) (Summary, error) {
	if metadata == "" {
		return Summary{Mark: offset}, nil
	}
	s, err := decode(offset, metadata)
	if err != nil {
		return Summary{}, err
	}
	sum := Summary{Mark: max(s.mark, s.crashed), settled: s.settled}
	for _, v := range s.settled {
		sum.Settled += v.to - v.from
	}
	for _, n := range s.notes {
		if n.due > now {
			sum.Later++
		}
	}
	return sum, nil
}

// Unsettled returns the first offset from the given one on that is not settled.
func (s *Summary) Unsettled(offset int64) int64 { return s.settled.past(offset) }
