package redisstreams

import (
	"strconv"
	"strings"
)

// lane is a queue as one subscription serves it.
type lane struct {
	queue string
	desk  *desk
	home  home
	post  post
	grave grave

	generation string // of the queue's group, as it was last read
	last       string // the last entry that was handed out, for whoever waits

	// known are the runs that are not settled, by the id of their entry. The lock is
	// the subscription's.
	known map[string]*delivery
}

func newLane(d *desk, queue string) *lane {
	k := d.sub.store.keys
	return &lane{
		queue: queue, desk: d, home: k.home(scope{}, queue), post: k.post(queue), grave: k.grave(queue),
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

// span is the range of ids that a script asks for, and the most rows that it expects;
// 0 if it is better asked for one by one.
type span struct {
	low, high string
	most      int
}

// few ids are asked for one by one, and so are those that are few among all that are
// open: a range has all in between.
const few = 4

// sayRuns adds the range of some runs of a lane, and their number.
func (r *request) sayRuns(l *lane, ids []string) {
	s := span{low: ids[0], high: ids[0]}
	for _, id := range ids[1:] {
		if before(id, s.low) {
			s.low = id
		}
		if before(s.high, id) {
			s.high = id
		}
	}
	if open := l.open(); len(ids) > few && open < 8*len(ids) {
		s.most = open + 50
	}
	r.say(s.low, s.high, digits(s.most), digits(len(ids)))
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
