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
	// one added. It takes no memory. Defaults to the most that can be: 134,217,728.
	Window int
	// Metadata is the most bytes of a commit's metadata, 128 to 32,767: the broker's
	// offset.metadata.max.bytes. Defaults to 4096.
	Metadata int
	// Owner tells the commits of this tracker from those of others that had the
	// partition. A random number, drawn for each tracker; if two have the same one,
	// Resume may take a commit of the other for its own.
	Owner uint32
}

func (c Config) withDefaults() Config {
	if c.Chunk <= 0 {
		c.Chunk = 64
	}
	if c.Window <= 0 {
		c.Window = widestWindow
	}
	if c.Metadata <= 0 {
		c.Metadata = 4096
	}
	c.Window = min(c.Window, widestWindow)
	c.Chunk = min(c.Chunk, c.Window)
	c.Metadata = max(128, min(c.Metadata, 1<<15-1))
	return c
}

// Tracker is the state of one partition. It is made by New or Load.
type Tracker struct {
	config Config

	records records
	next    int64 // the offset after the last record added
	beyond  int64 // the last offset for which the window had no room
	settled intervals
	notes   notes
	lines   lines

	// What may start. A record that waits is in one of these, or in its key's line.
	ready   ordered // is below the mark
	granted ordered // has its start on record
	fresh   ordered // waits until the mark is above it
	alone   ordered // waits for a commit that puts its start on record
	later   laters  // waits for its time

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

// advance steps over settled records, in front of the next one to be fetched and behind
// the lowest unsettled one.
func (t *Tracker) advance() {
	t.next = t.settled.past(t.next)
	t.settled.drop(t.base())
}

// base is the offset of the lowest unsettled record: what the next commit commits.
func (t *Tracker) base() int64 {
	if r := t.records.lowest; r != nil {
		return r.offset
	}
	return t.next
}

// Unsettled is how many of the records that were added are not settled.
func (t *Tracker) Unsettled() int { return t.records.n }

// Running is how many of them are running.
func (t *Tracker) Running() int { return t.running }

// Runs returns the offsets of those that are running, in order.
func (t *Tracker) Runs() []int64 {
	offsets := make([]int64, 0, t.running)
	for r := t.records.lowest; r != nil; r = r.higher {
		if r.run != 0 {
			offsets = append(offsets, r.offset)
		}
	}
	return offsets
}

// Later is how many of them wait for a time that was not reached yet.
func (t *Tracker) Later() int { return len(t.later) }
