package tracker

// record is a record that was added and not settled when it was.
type record struct {
	offset  int64
	seq     int64
	run     uint64 // the run that is under way; 0: none
	next    int64  // the next one that waits in its line; 0: none
	line    *line  // nil: no ordering key
	note    *note
	keyed   bool
	crashed bool // it was below the crash line when it was added, and the first of its key
	settled bool
}

// records are a ring of records in the order of their offsets, numbered one by one: seq
// says where one is, whatever offsets are left out.
type records struct {
	ring       []record // as many as a power of two
	first, end int64
	unsettled  int
}

func (rs *records) at(seq int64) *record {
	return &rs.ring[seq&int64(len(rs.ring)-1)]
}

// push appends a record. Pointers to others are void afterwards.
func (rs *records) push(r record) *record {
	if rs.end-rs.first == int64(len(rs.ring)) {
		rs.grow()
	}
	r.seq = rs.end
	rs.end++
	rs.unsettled++
	p := rs.at(r.seq)
	*p = r
	return p
}

func (rs *records) grow() {
	larger := records{ring: make([]record, max(64, 2*len(rs.ring)))}
	for seq := rs.first; seq < rs.end; seq++ {
		*larger.at(seq) = *rs.at(seq)
	}
	rs.ring = larger.ring
}

// lowest returns the lowest unsettled record, nil if there is none.
func (rs *records) lowest() *record {
	if rs.first == rs.end {
		return nil
	}
	return rs.at(rs.first)
}

// trim drops the settled records below the lowest unsettled one.
func (rs *records) trim() {
	for rs.first < rs.end && rs.at(rs.first).settled {
		*rs.at(rs.first) = record{}
		rs.first++
	}
}

// running returns the record of a run, nil if the run has ended.
func (rs *records) running(run Run) *record {
	if run.number == 0 || run.seq < rs.first || run.seq >= rs.end {
		return nil
	}
	if r := rs.at(run.seq); r.run == run.number {
		return r
	}
	return nil
}

// before returns the offset of the record before r, or r's own if there is none.
func (rs *records) before(r *record) int64 {
	if r.seq == rs.first {
		return r.offset
	}
	return rs.at(r.seq - 1).offset
}

// after returns the offset of the record after r, or r's own if there is none.
func (rs *records) after(r *record) int64 {
	if r.seq == rs.end-1 {
		return r.offset
	}
	return rs.at(r.seq + 1).offset
}

func (rs *records) each(do func(*record)) {
	for seq := rs.first; seq < rs.end; seq++ {
		do(rs.at(seq))
	}
}
