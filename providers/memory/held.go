package memory

import (
	"slices"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// held is one keeping of a job for later. A job that is held anew is another held,
// so that who promoted the old one forgets only that.
type held struct {
	entry *entry
	due   time.Time
	order uint64 // of equal due times
	state heldState
	until time.Time // when its reservation ends
	owner *promoter // whose reservation it is
	slot  int       // in the heap of its state
}

type heldState int

const (
	heldWaiting  heldState = iota
	heldReserved           // somebody is publishing it
	heldBehind             // due, and a job of its ordering key is reserved
	heldGone
)

// succession is an ordering key of which a job is reserved, or others wait behind the
// first that is not: of those that are due at once, only the first is in scope.waiting,
// because to look at all of them again for each that is published takes the square of
// their number.
type succession struct {
	reserved bool
	behind   heap[*held]
}

// orderKey names an ordering key of a queue.
type orderKey struct{ queue, key string }

func (h *held) orderKey() orderKey {
	return orderKey{h.entry.job.Queue, h.entry.job.OrderingKey}
}

// scope is held jobs and claims that belong together: the store's own, or a
// borrower's. The store's lock guards it.
type scope struct {
	claims claimTable

	waiting  heap[*held] // by due time
	reserved heap[*held] // by the end of the reservation
	keys     map[orderKey]*succession
	ids      map[string][]*held
	counts   map[string]int64 // by queue
	orders   uint64

	promoters  []*sleeper
	publishing int // promoters with a publish of their own
}

func newScope() *scope {
	return &scope{
		claims:  newClaimTable(),
		waiting: byDue(),
		reserved: heap[*held]{
			before: func(a, b *held) bool { return a.until.Before(b.until) },
			slot:   func(h *held) *int { return &h.slot },
		},
		keys:   make(map[orderKey]*succession),
		ids:    make(map[string][]*held),
		counts: make(map[string]int64),
	}
}

func byDue() heap[*held] {
	return heap[*held]{
		before: func(a, b *held) bool {
			return a.due.Before(b.due) || a.due.Equal(b.due) && a.order < b.order
		},
		slot: func(h *held) *int { return &h.slot },
	}
}

// hold keeps an entry until it is due. A copy of the same stamp is replaced.
func (c *scope) hold(e *entry, due, now time.Time) {
	for _, h := range c.ids[e.job.ID] {
		if h.entry.job.SameStamp(e.job) {
			c.drop(h, now)
			break
		}
	}
	c.orders++
	h := &held{entry: e, due: due, order: c.orders}
	c.waiting.push(h)
	c.ids[e.job.ID] = append(c.ids[e.job.ID], h)
	c.counts[e.job.Queue]++
	for _, p := range c.promoters {
		p.rouseFor(due)
	}
	if e.queue != nil {
		e.queue.rouseFor(due)
	}
}

// forget ends a keeping, whatever becomes of the entry.
func (c *scope) forget(h *held) {
	switch h.state {
	case heldWaiting:
		c.waiting.remove(h)
		c.elect(h.orderKey())
	case heldReserved:
		c.unreserve(h)
	case heldBehind:
		c.keys[h.orderKey()].behind.remove(h)
	}
	h.state = heldGone
	id, queue := h.entry.job.ID, h.entry.job.Queue
	if c.counts[queue]--; c.counts[queue] == 0 {
		delete(c.counts, queue)
	}
	rest := slices.DeleteFunc(c.ids[id], func(o *held) bool { return o == h })
	if c.ids[id] = rest; len(rest) == 0 {
		delete(c.ids, id)
	}
}

// drop forgets a held job for good.
func (c *scope) drop(h *held, now time.Time) {
	c.forget(h)
	if q := h.entry.queue; q != nil {
		q.leave(h.entry, now)
	}
}

// due returns a waiting job whose time has come, nil if there is none.
func (c *scope) due(now time.Time) *held {
	if h, ok := c.waiting.first(); ok && !now.Before(h.due) {
		return h
	}
	return nil
}

// ripen moves a due job into its queue: to its old place if it has one.
func (c *scope) ripen(h *held) {
	c.forget(h)
	if e := h.entry; e.line != nil {
		e.queue.resume(e, h.due)
	} else {
		e.queue.enter(e, h.due)
	}
}

// reserve takes up to limit due jobs for a promoter: of each ordering key one,
// because with several promoters nothing else would keep their order.
func (c *scope) reserve(p *promoter, limit int, until, now time.Time) (batch []*held, jobs []provider.Job) {
	for len(batch) < limit {
		h := c.due(now)
		if h == nil {
			break
		}
		if h.entry.line != nil {
			c.ripen(h) // a retry that kept its place in the store's own queue
			continue
		}
		c.waiting.remove(h)
		if key := h.orderKey(); key.key != "" {
			k := c.keys[key]
			if k == nil {
				k = &succession{behind: byDue()}
				c.keys[key] = k
			}
			if k.reserved {
				h.state = heldBehind
				k.behind.push(h)
				continue
			}
			k.reserved = true
		}
		h.state, h.owner, h.until = heldReserved, p, until
		c.reserved.push(h)
		batch, jobs = append(batch, h), append(jobs, *h.entry.job)
	}
	return batch, jobs
}

// unreserve ends a reservation; the next of its key waits for its turn.
func (c *scope) unreserve(h *held) {
	c.reserved.remove(h)
	if k := c.keys[h.orderKey()]; k != nil {
		k.reserved = false
		c.elect(h.orderKey())
	}
}

// elect lets the first of those behind wait for its turn, unless one of its key is
// reserved.
func (c *scope) elect(key orderKey) {
	k := c.keys[key]
	if k == nil || k.reserved {
		return
	}
	h, ok := k.behind.first()
	if !ok {
		delete(c.keys, key)
		return
	}
	k.behind.remove(h)
	h.state = heldWaiting
	c.waiting.push(h)
}

// expire gives back what is reserved by promoters that have not answered in time.
func (c *scope) expire(now time.Time) {
	for {
		h, ok := c.reserved.first()
		if !ok || now.Before(h.until) {
			return
		}
		c.unreserve(h)
		h.state = heldWaiting
		c.waiting.push(h)
	}
}

// wake returns when the next job is due or its reservation ends; zero: never.
func (c *scope) wake() (at time.Time) {
	if h, ok := c.waiting.first(); ok {
		at = h.due
	}
	if h, ok := c.reserved.first(); ok {
		at = sooner(at, h.until)
	}
	return at
}
