package embedded

import (
	"context"
	"math"
	"strconv"

	"github.com/backstage-go/backstage/runtime/provider"
)

// transaction is one write transaction. The first error of a statement sticks: all
// later ones do nothing, and the transaction is rolled back. So what works on it
// reads straight down, and must keep what it finds out apart until the commit.
type transaction struct {
	w      *writer
	serial int64 // which of this process it is, those that rolled back counted
	now    int64 // the store's clock, in nanoseconds
	seq    int64 // the last number taken
	stored int64 // what the file has of it
	err    error

	tallies  map[int64]*tally
	made     map[scopedName]int64 // queues made here
	incoming arrivals
	lanes    map[int64]bool   // queues that got something to start
	due      map[int64]int64  // the earliest time for which something is held, by scope
	wrote    bool             // a statement changed something
	grew     bool             // it needed room in the file
	stir     bool             // other processes may wait for something here
	letters  int64            // dead letters, -1 if not counted yet
	mostDead int64            // how many there may be, known if letters is
	events   []provider.Event // to be told of when it is on record
}

// tally is what a transaction changes of a queue's numbers.
type tally struct {
	depth, held, dead int64 // changes

	loaded      bool
	base, bound int64 // what the file has
}

// scopedName names a queue.
type scopedName struct {
	scope int64
	name  string
}

// scopeOwn is the scope that is not a borrower's.
const scopeOwn = 0

const sqlSequence = "select depth from queue where q = 1"

// begin starts a transaction. The caller holds the side file's write lock; what
// may still be in the way are programs that do not know of it.
func (w *writer) begin() (*transaction, error) {
	if _, err := w.conn.exec(context.Background(), "begin immediate"); err != nil {
		return nil, err
	}
	w.serial++
	t := &transaction{
		w: w, serial: w.serial, now: w.store.in.now(), letters: -1,
		tallies: make(map[int64]*tally, 4), lanes: make(map[int64]bool, 4),
	}
	t.incoming.t = t
	t.row(sqlSequence, nil, &t.stored)
	t.seq = t.stored
	return t, nil
}

// next takes a number from the sequence.
func (t *transaction) next() int64 { return t.take(1) }

// take takes count numbers in a row and returns the first. The sequence follows
// the clock, but never falls.
func (t *transaction) take(count int64) int64 {
	if t.seq == t.stored {
		t.seq = max(t.seq, t.now/1000)
	}
	first := t.seq + 1
	t.seq += count
	return first
}

// commit writes the numbers and ends the transaction. After an error nothing of it
// is in the file, unless the error is doubtful.
func (t *transaction) commit() error {
	t.writeTallies()
	t.w.point("applied")
	if t.err != nil {
		t.rollback()
		return t.err
	}
	if _, err := t.w.conn.exec(context.Background(), "commit"); err != nil {
		t.rollback()
		return commitFault(t.w.store.path, err)
	}
	for name, q := range t.made {
		t.w.queues[name] = q
	}
	t.w.point("committed")
	return nil
}

// rollback fails if SQLite has rolled back by itself, which is as good.
func (t *transaction) rollback() { _, _ = t.w.conn.exec(context.Background(), "rollback") }

const (
	sqlSetSequence = "update queue set depth = ? where q = 1"
	sqlAddTally    = "update queue set depth = depth + ?, held = held + ?, dead = dead + ? where q = ?"
)

func (t *transaction) writeTallies() {
	if t.seq != t.stored {
		t.exec(sqlSetSequence, t.seq)
	}
	for q, n := range t.tallies {
		if n.depth != 0 || n.held != 0 || n.dead != 0 {
			t.exec(sqlAddTally, n.depth, n.held, n.dead, q)
		}
	}
}

// tally returns the changes of a queue.
func (t *transaction) tally(q int64) *tally {
	n := t.tallies[q]
	if n == nil {
		n = new(tally)
		t.tallies[q] = n
	}
	return n
}

// room reports whether a client may add a job to a queue.
func (t *transaction) room(q int64) bool {
	n := t.tally(q)
	if !n.loaded {
		t.row("select depth, bound from queue where q = ?", []any{q}, &n.base, &n.bound)
		n.loaded = true
	}
	return n.bound == 0 || n.base+n.depth < n.bound
}

// queue returns the number of a queue, which it makes if need be.
func (t *transaction) queue(scope int64, name string) int64 {
	at := scopedName{scope, name}
	if q, ok := t.w.queues[at]; ok {
		return q
	}
	if q, ok := t.made[at]; ok {
		return q
	}
	var q int64
	t.exec("insert into queue (scope, name) values (?, ?) on conflict do nothing", scope, name)
	t.row("select q from queue where scope = ? and name = ?", []any{scope, name}, &q)
	if t.made == nil {
		t.made = make(map[scopedName]int64)
	}
	t.made[at] = q
	return q
}

// exec runs a statement and returns how many rows it changed.
func (t *transaction) exec(query string, args ...any) int64 {
	if t.err != nil {
		return 0
	}
	changed, err := t.w.conn.exec(context.Background(), query, args...)
	t.err = err
	t.wrote = true
	return changed
}

// row reads one row, and reports whether there was one.
func (t *transaction) row(query string, args []any, into ...any) bool {
	if t.err != nil {
		return false
	}
	found, err := t.w.conn.row(context.Background(), query, args, into...)
	t.err = err
	return found
}

// query calls each for every row, until it returns errEnough.
func (t *transaction) query(query string, args []any, each func(row) error) {
	if t.err == nil {
		t.err = t.w.conn.query(context.Background(), query, args, each)
	}
}

// numbers writes integers as a JSON array, for json_each.
func numbers[T any](list []T, number func(T) int64) string {
	b := make([]byte, 0, 2+17*len(list))
	b = append(b, '[')
	for i, element := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, number(element), 10)
	}
	return string(append(b, ']'))
}

func same(n int64) int64 { return n }

// forever is a time that does not come.
const forever = math.MaxInt64
