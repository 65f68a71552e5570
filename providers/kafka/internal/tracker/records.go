package tracker

// record is a record that was added and is not settled.
type record struct {
	offset  int64
	before  int64   // the offset of the record before it, settled or not
	run     uint64  // the run that is under way; 0: none
	line    *line   // nil: no ordering key
	behind  *record // the next one that waits in its line
	note    *note
	keyed   bool
	crashed bool // it was below the crash line when it was added, and the first of its key

	lower, higher *record // its neighbours among those that are not settled
}

// records are those that are not settled, in the order of their offsets.
type records struct {
	lowest, highest *record
	n               int
	spare           *record // settled ones, to be used again
}

// push appends a record.
func (rs *records) push(r record) *record {
	p := rs.spare
	if p == nil {
		p = new(record)
	} else {
		rs.spare = p.higher
	}
	*p = r
	p.lower = rs.highest
	if p.lower == nil {
		rs.lowest = p
	} else {
		p.lower.higher = p
	}
	rs.highest = p
	rs.n++
	return p
}

// remove takes out a record. It is of no use afterwards.
func (rs *records) remove(r *record) {
	if r.lower == nil {
		rs.lowest = r.higher
	} else {
		r.lower.higher = r.higher
	}
	if r.higher == nil {
		rs.highest = r.lower
	} else {
		r.higher.lower = r.lower
	}
	*r = record{higher: rs.spare}
	rs.spare = r
	rs.n--
}
