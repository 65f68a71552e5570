package redisstreams

import (
	"strconv"
	"strings"
)

// A subscription serves queues. A queue that it serves is a lane; the lanes whose keys
// are in one hash slot have a desk, which reads and settles for all of them at once. With
// one tag for the namespace there is one desk.

// lane is a queue as one subscription serves it.
type lane struct {
	queue   string
	desk    *desk
	keys    *queueKeys
	group   groupKeys
	letters letterKeys

	generation string // of the queue's group, as it was last read
	last       string // the last entry that was handed out, for whoever waits

	// known are the runs that are not settled, by the id of their entry. The lock is
	// the subscription's.
	known map[string]*delivery
}

func newLane(d *desk, queue string) *lane {
	k := d.sub.store.keys
	return &lane{
		queue: queue, desk: d, keys: k.queue(scope{}, queue), group: k.group(queue), letters: k.letters(queue),
		last: "0-0", known: make(map[string]*delivery),
	}
}

// knows notes a run. An older one of the same entry is not ours any more: only this
// subscription could settle either.
func (l *lane) knows(d *delivery) {
	sub := l.desk.sub
	sub.mu.Lock()
	older := l.known[d.id]
	l.known[d.id] = d
	sub.mu.Unlock()
	if older != nil {
		older.lose()
	}
}

// forgets notes that a run is over.
func (l *lane) forgets(d *delivery) {
	sub := l.desk.sub
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if l.known[d.id] == d {
		delete(l.known, d.id)
	}
}

func (l *lane) isKnown(id string) bool {
	sub := l.desk.sub
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return l.known[id] != nil
}

// open is how many runs are not settled.
func (l *lane) open() int {
	sub := l.desk.sub
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return len(l.known)
}

// few ids are asked for one by one, and so are those that are few among all that are
// open: a range has all in between.
const few = 4

// run is something about one delivery.
type run interface{ run() *delivery }

func (d *delivery) run() *delivery    { return d }
func (st *settlement) run() *delivery { return st.delivery }
func (b beat) run() *delivery         { return b.delivery }

// sayRange adds the range of some runs of a lane.
func sayRange[R run](r *request, l *lane, list []R) {
	low := list[0].run().id
	high := low
	for _, one := range list[1:] {
		id := one.run().id
		if before(id, low) {
			low = id
		}
		if before(high, id) {
			high = id
		}
	}
	most := 0
	if open := l.open(); len(list) > few && open < 8*len(list) {
		most = open + 50
	}
	r.say(low, high, digits(most))
}

// before compares the ids of entries, which are two numbers.
func before(a, b string) bool {
	aTime, aSeq, _ := strings.Cut(a, "-")
	bTime, bSeq, _ := strings.Cut(b, "-")
	if aTime != bTime {
		return less(aTime, bTime)
	}
	return less(aSeq, bSeq)
}

// less compares numbers without leading zeros.
func less(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// deliveriesOf writes the number of an entry's deliveries, which is mostly 1.
func deliveriesOf(n int64) string {
	if n < 10 {
		return digits(int(n))
	}
	return strconv.FormatInt(n, 10)
}
