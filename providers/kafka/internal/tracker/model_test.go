package tracker

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// world is a partition, its group's record and the workers that have it in turn, told
// in maps that remember everything: what a tracker squeezes into a few numbers.
type world struct {
	t      *testing.T
	config Config
	slots  int
	now    int64

	log    []*entry // what was written, in the order of offsets
	start  int64    // what is below was deleted
	end    int64
	record commitment // what is on record for the group
	owner  *worker
	former *worker // the one before, which may still run things
}

// entry is a record of the log and the truth about it.
type entry struct {
	offset int64
	key    string
	final  bool // its settlement was said to be on record
	lost   bool // deleted before it was settled
	// Runs that had no outcome when their worker lost the partition as dead; that had
	// one which was not on record then; starts on record that had not happened; runs
	// that were handed over.
	died, unheard, granted, handed int32
}

// commitment is a commit and what its maker knew then.
type commitment struct {
	Commit
	known   map[int64]knowledge
	granted map[int64]bool // starts that it puts on record and that have not happened
	leaving bool
}

// knowledge is what a worker knows of an entry.
type knowledge struct {
	settled bool
	counts  Counts
	due     int64
	idle    bool  // it was given back or put off by this worker or one before,
	crashes int32 // and had so many crashes then
}

// worker is a process that has, or had, the partition.
type worker struct {
	*Tracker
	known    map[int64]knowledge
	runs     []*started
	promises []promise
	sent     *commitment
	leaving  bool
	judged   map[*entry]entry // what was counted when it lost the partition
}

type started struct {
	Run
	entry   *entry
	covered bool // by what is on record it may be running
}

// promise is a settlement that waits for its commit.
type promise struct {
	commit  int64
	entry   *entry
	settled bool
}

func newWorld(t *testing.T, config Config, slots int) *world {
	w := &world{t: t, config: config, slots: slots, now: 1}
	w.record.known = map[int64]knowledge{}
	w.owner = w.load()
	return w
}

// load makes a worker of what is on record.
func (w *world) load() *worker {
	w.config.Owner++
	tr, err := Load(w.config, w.record.Offset, w.record.Metadata)
	if err != nil {
		w.t.Fatalf("what is on record (%d, %q) does not load: %v", w.record.Offset, w.record.Metadata, err)
	}
	o := &worker{Tracker: tr, known: map[int64]knowledge{}}
	for offset, k := range w.record.known {
		k.idle = k.idle && !w.record.granted[offset]
		o.known[offset] = k
	}
	w.skip(o)
	return o
}

func (w *world) find(offset int64) *entry {
	for _, e := range w.log {
		if e.offset == offset {
			return e
		}
	}
	return nil
}

func (w *world) write(key string, gap int64) {
	w.log = append(w.log, &entry{offset: w.end + gap, key: key})
	w.end += gap + 1
}

// fetch adds up to n records.
func (w *world) fetch(n int) {
	o := w.owner
	for _, e := range w.log {
		if e.offset < o.Next() || e.offset < w.start {
			continue
		}
		if n--; n < 0 {
			return
		}
		want := Kept
		if w.record.known[e.offset].settled && o.known[e.offset].settled {
			want = Dropped
		}
		got := o.Add(e.offset, e.key)
		if got == Full {
			if o.Paused() != WindowFull && e.offset-o.base() < int64(w.config.Window) {
				w.t.Fatalf("record %d was not added to a window that has room", e.offset)
			}
			return
		}
		if got != want {
			w.t.Fatalf("Add(%d) = %d, want %d", e.offset, got, want)
		}
	}
}

// begin starts up to n records, and checks that each may.
func (w *world) begin(n int) {
	o := w.owner
	for ; n > 0 && len(o.runs) < w.slots; n-- {
		run, ok := o.Start(w.now)
		if !ok {
			return
		}
		e := w.find(run.Offset)
		k := o.known[run.Offset]
		switch {
		case e == nil:
			w.t.Fatalf("record %d was started and does not exist", run.Offset)
		case e.final:
			w.t.Fatalf("record %d was started after its settlement was on record", run.Offset)
		case k.settled:
			w.t.Fatalf("record %d was started after it was settled here", run.Offset)
		case o.leaving:
			w.t.Fatalf("record %d was started while the partition is handed over", run.Offset)
		case run.Counts != k.counts:
			w.t.Fatalf("record %d was started with %+v, want %+v", run.Offset, run.Counts, k.counts)
		case k.due > w.now:
			w.t.Fatalf("record %d was started at %d, due at %d", run.Offset, w.now, k.due)
		}
		least := e.died
		most := e.died + e.unheard + e.granted + e.handed/8 + 1
		if run.Crashes < least || run.Crashes > most {
			w.t.Fatalf("record %d was started with %d crashes, want %d to %d (%+v)", run.Offset, run.Crashes, least, most, *e)
		}
		for _, r := range o.runs {
			if r.Offset == run.Offset {
				w.t.Fatalf("record %d runs twice", run.Offset)
			}
		}
		for _, before := range w.log {
			if before.offset < e.offset && before.key == e.key && e.key != "" && !before.lost && !w.record.known[before.offset].settled {
				w.t.Fatalf("record %d was started before %d of its key was settled on record", e.offset, before.offset)
			}
		}
		k.idle = false
		o.known[run.Offset] = k
		o.runs = append(o.runs, &started{Run: run, entry: e, covered: true})
	}
}

// finish settles a run: 0 settles, 1 puts off, 2 releases.
func (w *world) finish(o *worker, i, how int, due int64) {
	if len(o.runs) == 0 {
		return
	}
	i %= len(o.runs)
	r := o.runs[i]
	o.runs = append(o.runs[:i], o.runs[i+1:]...)
	k := o.known[r.Offset]
	var commit int64
	var err error
	switch {
	case how == 1 && r.entry.key != "":
		k.counts.Failures++
		k.counts.Parks += 3
		k.due = due
		k.idle, k.crashes = true, r.Crashes
		commit, err = o.Again(r.Run, k.counts, due)
	case how == 2:
		k.idle, k.crashes = true, r.Crashes
		commit, err = o.Release(r.Run)
	default:
		k.settled = true
		commit, err = o.Settle(r.Run)
	}
	if err != nil {
		w.t.Fatalf("settling %d: %v", r.Offset, err)
	}
	if _, err := o.Settle(r.Run); err != ErrNotRunning {
		w.t.Fatalf("settling %d twice: %v", r.Offset, err)
	}
	o.known[r.Offset] = k
	o.promises = append(o.promises, promise{commit, r.entry, k.settled})
}

// send lets the owner make its next commit.
func (w *world) send(o *worker, slots int) bool {
	c, ok := o.Commit(w.now, slots)
	if !ok {
		return false
	}
	if len(c.Metadata) > o.config.Metadata {
		w.t.Fatalf("metadata of %d bytes, bound %d", len(c.Metadata), o.config.Metadata)
	}
	for _, e := range w.log {
		if e.offset < c.Offset && !o.known[e.offset].settled && !e.lost {
			w.t.Fatalf("commit of offset %d passes over %d, which is not settled", c.Offset, e.offset)
		}
	}
	known := map[int64]knowledge{}
	for offset, k := range o.known {
		known[offset] = k
	}
	granted := map[int64]bool{}
	for _, r := range append(o.flight.starts, o.granted...) {
		granted[r.offset] = true
	}
	o.sent = &commitment{Commit: c, known: known, granted: granted, leaving: o.leaving}
	return true
}

// land puts on record what the owner sent.
func (w *world) land() {
	o := w.owner
	if o.sent.Offset < w.record.Offset {
		w.t.Fatalf("commit of %d after %d", o.sent.Offset, w.record.Offset)
	}
	w.record = *o.sent
	for _, r := range o.runs {
		r.covered = !o.sent.leaving
	}
	w.probe()
}

// probe looks at what is on record with the eyes of a next owner.
func (w *world) probe() {
	next, err := Load(w.config, w.record.Offset, w.record.Metadata)
	if err != nil {
		w.t.Fatalf("what is on record (%d, %q) does not load: %v", w.record.Offset, w.record.Metadata, err)
	}
	next.Skip(w.start)
	found := map[int64]*record{}
	for _, e := range w.log {
		if e.offset < max(w.record.Offset, w.start) {
			continue
		}
		switch got := next.Add(e.offset, e.key); {
		case got == Full:
		case !e.lost && (got == Dropped) != w.record.known[e.offset].settled:
			w.t.Fatalf("record %d is settled: %v; to the next owner: %v", e.offset, w.record.known[e.offset].settled, got == Dropped)
		case got == Kept:
			found[e.offset] = next.records.highest
		}
	}
	for _, r := range w.owner.runs {
		if f := found[r.Offset]; f != nil {
			least, most := r.Crashes+1, r.Crashes+1
			if w.record.leaving {
				least = r.Crashes // and one more, at each eighth time
			}
			if got := f.crashesKnown(); got < least || got > most {
				w.t.Fatalf("record %d runs with %d crashes and has %d to the next owner (handed over: %v)", r.Offset, r.Crashes, got, w.record.leaving)
			}
		}
	}
	for offset, k := range w.record.known {
		f := found[offset]
		if f == nil || !k.idle || w.record.granted[offset] {
			continue
		}
		got := f.crashesKnown()
		came := f.note.due == k.due || f.note.due == 0 && k.due <= w.now
		if got != k.crashes || f.note.counts != k.counts || !came {
			w.t.Fatalf("record %d waits as %+v, and to the next owner as %d crashes, %+v", offset, k, got, *f.note)
		}
	}
}

func (r *record) crashesKnown() int32 {
	switch {
	case r.note != nil:
		return r.note.crashes
	case r.crashed:
		return 1
	}
	return 0
}

// answer tells the owner what became of what it sent: 0 accepted, 1 refused, 2 unknown
// and on record, 3 unknown and not on record.
func (w *world) answer(how int) {
	o := w.owner
	if o.sent == nil {
		return
	}
	number := o.sent.Number
	if how == 0 || how == 2 {
		w.land()
	}
	o.sent = nil
	switch how {
	case 0:
		o.Accepted(number)
	case 1:
		o.Refused(number)
	default:
		o.Unknown(number)
	}
	w.fulfil(o)
}

// fulfil checks which settlements are final now.
func (w *world) fulfil(o *worker) {
	var rest []promise
	for _, p := range o.promises {
		if !o.Final(p.commit) {
			rest = append(rest, p)
			continue
		}
		if p.settled {
			if !w.record.known[p.entry.offset].settled {
				w.t.Fatalf("settlement of %d is said to be on record, and is not", p.entry.offset)
			}
			p.entry.final = true
		}
	}
	o.promises = rest
}

// replace gives the partition to a new worker: the one that has it has died, or is
// thought to have, or has handed it over.
func (w *world) replace() {
	w.judge()
	w.former = w.owner
	w.owner = w.load()
}

// judge counts what the owner leaves behind.
func (w *world) judge() {
	o := w.owner
	before := map[*entry]entry{}
	for _, e := range w.log {
		before[e] = *e
	}
	s := state{}
	if w.record.Metadata != "" {
		s, _ = decode(w.record.Offset, w.record.Metadata)
	}
	live := map[int64]bool{}
	for _, r := range o.runs {
		live[r.Offset] = true
		if r.covered {
			r.entry.died++
		} else {
			r.entry.handed++
		}
	}
	for _, n := range s.notes {
		if n.open && !live[n.offset] && w.record.granted[n.offset] {
			w.find(n.offset).granted++
		}
	}
	for _, p := range o.promises {
		if !live[p.entry.offset] {
			p.entry.unheard++
		}
	}
	o.sent = nil
	o.judged = map[*entry]entry{}
	for e, b := range before {
		o.judged[e] = entry{died: e.died - b.died, unheard: e.unheard - b.unheard, granted: e.granted - b.granted, handed: e.handed - b.handed}
	}
}

// back lets the worker that had the partition have it again, as far as it can.
func (w *world) back(o *worker) bool {
	if !o.Resume(w.record.Offset, w.record.Metadata) {
		return false
	}
	if w.owner != o {
		w.judge()
		for e, j := range o.judged { // it was not so: it goes on with its runs
			e.died -= j.died
			e.unheard -= j.unheard
			e.granted -= j.granted
		}
		w.former, w.owner = w.owner, o
	}
	o.sent = nil
	o.leaving = false
	w.fulfil(o)
	w.skip(o)
	return true
}

// expire deletes the log below an offset.
func (w *world) expire(to int64) {
	w.start = max(w.start, min(to, w.end))
	w.skip(w.owner)
}

// skip tells a worker where the log begins.
func (w *world) skip(o *worker) {
	next, gone := o.Next(), int64(0)
	for _, e := range w.log {
		if e.offset >= next && e.offset < w.start && !o.known[e.offset].settled && !e.lost {
			e.lost = true
			gone++
		}
	}
	if lost := o.Skip(w.start); lost.Unsettled < gone {
		w.t.Fatalf("%d records lost, told %+v", gone, lost)
	}
}

// drain lets everything go well until nothing is left.
func (w *world) drain() {
	for i := 0; ; i++ {
		o := w.owner
		w.now += 1000
		w.fetch(1 << 20)
		w.begin(w.slots)
		for len(o.runs) > 0 {
			w.finish(o, 0, 0, 0)
		}
		w.answer(0)
		w.send(o, w.slots)
		w.answer(0)
		if w.record.Offset >= w.end && o.Unsettled() == 0 && o.Next() >= w.end {
			break
		}
		if i > 4*len(w.log)+100 {
			w.t.Fatalf("stuck: %d unsettled, next %d of %d, on record %d, paused %d", o.Unsettled(), o.Next(), w.end, w.record.Offset, o.Paused())
		}
	}
	for _, e := range w.log {
		if !e.lost && !e.final && e.offset >= w.start && !w.record.known[e.offset].settled {
			w.t.Fatalf("record %d was not settled", e.offset)
		}
	}
}

// play does what the bytes say, one thing a pair of bytes.
func (w *world) play(script []byte) {
	for ; len(script) >= 2; script = script[2:] {
		w.step(script[0], int(script[1]))
	}
	w.answer(0)
	if w.owner.leaving && !w.back(w.owner) {
		w.replace()
	}
	w.drain()
}

func (w *world) step(op byte, arg int) {
	o := w.owner
	switch op % 20 {
	case 0, 1:
		key := ""
		if arg%3 > 0 {
			key = fmt.Sprint("key ", arg>>4%4)
		}
		gap := int64(0)
		if arg%16 == 15 {
			gap = int64(arg >> 4)
		}
		for range 1 + arg%8 {
			if len(w.log) == 250 {
				break
			}
			w.write(key, gap)
			gap = 0
		}
	case 2, 3:
		w.fetch(arg % 32)
	case 4, 5, 6:
		w.begin(1 + arg%w.slots)
	case 7, 8, 9:
		w.finish(o, arg, 0, 0)
	case 10:
		w.finish(o, arg, 1, w.now+int64(arg%8)*10)
	case 11:
		w.finish(o, arg, 2, 0)
	case 12, 13:
		w.send(o, max(0, w.slots-len(o.runs)))
		if arg%2 == 0 {
			w.answer(0)
		}
	case 14:
		w.answer(arg % 4)
	case 15:
		if o.sent != nil && arg%2 == 0 {
			w.land()
		}
		if arg%4 < 2 {
			w.replace()
		}
	case 16:
		o.Leave()
		o.leaving = true
		if arg%2 == 0 {
			w.answer(arg >> 1 % 4)
			w.send(o, 0)
			w.answer(0)
		}
	case 17:
		w.turn(arg)
	case 18:
		w.now += int64(arg)
	case 19:
		if arg%16 == 0 {
			w.expire(w.record.Offset + int64(arg>>4))
		}
	}
}

// turn has to do with the worker that had the partition before.
func (w *world) turn(arg int) {
	f := w.former
	if arg%4 == 3 || f == nil {
		if w.owner.leaving || arg%8 == 7 {
			w.back(w.owner)
		}
		return
	}
	if arg%4 == 0 {
		w.back(f)
		return
	}
	w.finish(f, arg, 0, 0)
	if w.send(f, 0) {
		number := f.sent.Number
		f.sent = nil
		f.Refused(number)
		w.fulfil(f)
	}
}

func FuzzRules(f *testing.F) {
	often := []byte{0, 2, 4, 7, 8, 10, 12, 12, 14, 18}
	for seed := range uint64(64) {
		r := rand.New(rand.NewPCG(seed, 1))
		script := make([]byte, 200+r.IntN(3000))
		tame := r.IntN(8)
		for i := range script {
			script[i] = byte(r.Uint32())
			if i%2 == 0 && r.IntN(8) < tame {
				script[i] = often[r.IntN(len(often))]
			}
		}
		f.Add(byte(r.Uint32()), script)
	}
	f.Fuzz(func(t *testing.T, shape byte, script []byte) {
		if len(script) > 4000 {
			return
		}
		w := newWorld(t, Config{
			Chunk:    1 + int(shape%8)*2,
			Window:   []int{8, 40, 300, 2000}[shape>>3%4],
			Metadata: []int{128, 160, 256, 4096}[shape>>5%4],
		}, []int{2, 16, 60}[shape%3])
		w.play(script)
	})
}
