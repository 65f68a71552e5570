package tracker

import "errors"

// ErrNotRunning is returned for the settlement of a run that was settled before.
var ErrNotRunning = errors.New("run is settled")

// ErrUnordered is returned by Again for a record that has no ordering key.
var ErrUnordered = errors.New("record has no ordering key and cannot wait in its place")

// Config bounds a tracker. The zero value works.
type Config struct {
	// Chunk is how many records the mark is moved ahead of the next start, about
	// twice the worker's slots: with fewer, starts wait for commits; with more, a
	// crash counts for more records that had not started. Defaults to 64.
	Chunk int
	// Window is the most offsets between the lowest unsettled record and the last
	// one added. Defaults to 65,536. At most 2,097,151.
	Window int
	// Metadata is the most bytes of a commit's metadata, at least 128: the broker's
	// offset.metadata.max.bytes. Defaults to 4096.
	Metadata int
	// Owner tells the commits of one tracker from those of others that had the
	// partition: a random number, drawn for each tracker.
	Owner uint32
}

func (c Config) withDefaults() Config {
	if c.Chunk <= 0 {
		c.Chunk = 64
	}
	if c.Window <= 0 {
		c.Window = 1 << 16
	}
	if c.Metadata <= 0 {
		c.Metadata = 4096
	}
	c.Window = min(c.Window, widestSpan)
	c.Chunk = min(c.Chunk, c.Window)
	c.Metadata = max(c.Metadata, 128)
	return c
}

// Tracker is the state of one partition. It is made by New or Load.
type Tracker struct {
	config Config

	records records
	next    int64 // the offset after the last record added
	settled intervals
	notes   notes
	lines   lines

	// What may start. A record that waits is in one of these, or in its key's line.
	ready ordered // may start
	fresh ordered // waits until the mark is above it
	alone ordered // waits for a commit that puts its own start on record
	later laters  // waits for its time

	crashed int64  // the crash line
	mark    int64  // the mark that is on record
	started int64  // above all records that were started below the mark
	runs    uint64 // runs so far
	running int

	space space

	number  int64 // of the last commit
	final   int64 // of the last commit that was accepted
	changed bool  // there is something that no commit has said
	leaving bool
	flight  *flight // the commit that was not answered yet
	last    Commit  // the last one accepted
	doubts  []Commit
}

// New returns the tracker of a partition of which the group has nothing on record, or
// only an offset: its records count from the given offset on.
func New(config Config, offset int64) *Tracker {
	t := &Tracker{config: config.withDefaults(), next: offset, crashed: offset, mark: offset}
	t.records.first, t.records.end = 1, 1
	t.lines.of = make(map[string]*line)
	t.last = Commit{Offset: offset}
	t.space = newSpace(t.config.Metadata)
	return t
}

// Load returns the tracker of a partition from the commit that is on record, and counts
// the crashes of what may be running by it. Empty metadata is that of New. It fails
// with ErrForeign for metadata that this package did not write to this offset, with
// ErrNewer for metadata of a newer version, and with ErrBound if the metadata was
// written under a larger bound.
func Load(config Config, offset int64, metadata string) (*Tracker, error) {
	t := New(config, offset)
	if metadata == "" {
		return t, nil
	}
	s, err := decode(offset, metadata)
	if err != nil {
		return nil, err
	}
	t.last.Metadata = metadata
	t.crashed = max(s.crashed, s.mark)
	t.mark = t.crashed
	t.settled = s.settled
	for i := range s.notes {
		n := &s.notes[i]
		n.crash()
		t.notes.add(n)
		t.space.reserve(n.keyed)
	}
	t.space.measure(&t.settled)
	if !t.space.sound() {
		return nil, ErrBound
	}
	t.advance()
	return t, nil
}

// Added is what becomes of a record that was added.
type Added int

const (
	// Kept: the record waits for its start. The caller keeps its bytes until it is
	// settled.
	Kept Added = iota + 1
	// Dropped: it is settled, or was added before. There is nothing to do.
	Dropped
	// Full: the window has no room. The record was not added; it may be when others
	// have been settled.
	Full
)

// Next is the offset from which on records are to be fetched.
func (t *Tracker) Next() int64 { return t.next }

// Add takes note of a record that was fetched, with its ordering key, if any. Records
// are added in the order of their offsets; offsets that are left out hold no record.
func (t *Tracker) Add(offset int64, key string) Added {
	if offset < t.next {
		return Dropped
	}
	if r := t.records.lowest(); r != nil && offset-r.offset >= int64(t.config.Window) {
		return Full
	}
	t.forget(t.next, offset)
	t.next = offset
	if t.advance(); t.next > offset {
		return Dropped
	}
	t.next++
	n := t.notes.find(offset)
	r := t.records.push(record{offset: offset, note: n, keyed: key != ""})
	t.advance()
	if n != nil && r.keyed && !n.keyed {
		n.keyed = true
		t.space.reserved += keyedSpace - plainSpace
	}
	if r.keyed && t.lines.join(&t.records, r, key) {
		return Kept
	}
	r.crashed = offset < t.crashed
	t.queue(r)
	return Kept
}

// Lost is what a gap in the log took with it.
type Lost struct {
	// From and To bound the offsets that are gone, To not included. Both are 0 if
	// none is.
	From, To int64
	// Unsettled is how many of them may have held a record that was not settled.
	Unsettled int64
}

// Skip says that the log begins at the given offset: what is below and was not added
// is gone. Records that were added stay: the caller has their bytes.
func (t *Tracker) Skip(to int64) Lost {
	if to <= t.next {
		return Lost{}
	}
	lost := Lost{From: t.next, To: to, Unsettled: to - t.next - t.settled.within(t.next, to)}
	t.forget(t.next, to)
	t.next = to
	t.advance()
	t.changed = true
	return lost
}

// forget drops the notes on records that do not exist.
func (t *Tracker) forget(from, to int64) {
	for _, n := range t.notes.cut(from, to) {
		t.space.release(n.keyed)
	}
}

// advance steps over settled records, in front of the next one to be fetched and behind
// the lowest unsettled one.
func (t *Tracker) advance() {
	t.next = t.settled.past(t.next)
	t.settled.drop(t.base())
}

// base is the offset of the lowest unsettled record: what the next commit commits.
func (t *Tracker) base() int64 {
	if r := t.records.lowest(); r != nil {
		return r.offset
	}
	return t.next
}

// Counts are what a record that waits in its place has behind it, besides crashes.
type Counts struct {
	// Failures is how many of its runs failed. At most 2,097,151 are counted.
	Failures int32
	// Snoozes is how many of its runs asked to be run later. At most 16,383 are
	// counted.
	Snoozes int32
	// Parks is how often it was put off because nobody could run it. At most 16,383
	// are counted.
	Parks int32
}

// Run is one start of a record.
type Run struct {
	// Offset is the record's.
	Offset int64
	// Crashes is how many runs of the record ended with their worker, 127 at most;
	// the first of them may not have been a run (see the package's documentation).
	Crashes int32
	// Counts are those that the last Again gave.
	Counts Counts

	number uint64
	seq    int64
}

// Start starts the lowest record that may start at the given time (milliseconds since
// 1970, the clock that Again was given). It returns false if there is none, or no room
// for one in the metadata; see Paused and Commit.
func (t *Tracker) Start(now int64) (Run, bool) {
	t.wake(now)
	seq, ok := t.ready.lowest()
	if !ok {
		return Run{}, false
	}
	r := t.records.at(seq)
	if r.note == nil {
		if !t.fits(r) {
			return Run{}, false
		}
		t.space.reserve(r.keyed)
		t.started = max(t.started, r.offset+1)
	}
	t.ready.pop()
	t.runs++
	t.running++
	r.run = t.runs
	run := Run{Offset: r.offset, number: r.run, seq: seq}
	if n := r.note; n != nil {
		run.Crashes, run.Counts = n.crashes, n.counts
	}
	return run, true
}

// Wake returns the earliest time at which a record that waits in its place may start.
// It returns false if none waits for a time.
func (t *Tracker) Wake() (due int64, ok bool) {
	if len(t.later) == 0 {
		return 0, false
	}
	return t.later[0].due, true
}

// Pause is why a partition takes no more.
type Pause int

const (
	// NotPaused: it goes on.
	NotPaused Pause = iota
	// WindowFull: no more records fit between the lowest unsettled one and the last.
	WindowFull
	// MetadataFull: what is settled out of order, waits or runs leaves no room in the
	// commit's metadata for another run.
	MetadataFull
)

// Paused says why the partition takes no more records, or starts none, until some of
// those that it has are settled.
func (t *Tracker) Paused() Pause {
	if t.next-t.base() >= int64(t.config.Window) {
		return WindowFull
	}
	if seq, ok := t.ready.lowest(); ok {
		if r := t.records.at(seq); r.note == nil && !t.fits(r) {
			return MetadataFull
		}
		return NotPaused
	}
	if seq, ok := t.alone.lowest(); ok {
		if r := t.records.at(seq); r.note == nil && !t.fits(r) {
			return MetadataFull
		}
	}
	return NotPaused
}

// Unsettled is how many of the records that were added are not settled.
func (t *Tracker) Unsettled() int { return t.records.unsettled }

// Running is how many of them are running.
func (t *Tracker) Running() int { return t.running }

// Later is how many of them wait for a time that was not reached yet.
func (t *Tracker) Later() int { return len(t.later) }

// queue puts a record that waits, and is the first of its key, where it belongs.
func (t *Tracker) queue(r *record) {
	switch {
	case r.note != nil && r.note.due > 0:
		t.later.push(later{due: r.note.due, seq: r.seq})
	case r.note != nil || r.offset < t.crashed:
		t.alone.push(r.seq)
	case r.offset < t.mark && !t.leaving:
		t.ready.push(r.seq)
	default:
		t.fresh.push(r.seq)
	}
}

// wake moves those whose time has come to where they wait for their start.
func (t *Tracker) wake(now int64) {
	for len(t.later) > 0 && t.later[0].due <= now {
		l := t.later.pop()
		t.records.at(l.seq).note.due = 0
		t.alone.push(l.seq)
	}
}

// fits reports whether the record may be started, or have its start put on record:
// whatever comes of it, and of all that run, the metadata has room.
func (t *Tracker) fits(r *record) bool {
	return t.space.fits(r.keyed, r == t.records.lowest())
}
