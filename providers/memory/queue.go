package memory

import (
	"slices"
	"time"
)

// queue is where jobs of a name wait.
type queue struct {
	store *Store
	name  string

	// Entries that are ready stand in two places, each in the order of their
	// places: those that come for the first time, and those that had their place
	// before (released, retried in place, next of their key).
	ready ring[*entry]
	early heap[*entry]

	running heap[*delivery] // by the end of their lease
	lines   map[string]*line
	readers []*subscription

	unsettled int             // all jobs: ready, running, held, behind another of their key
	bound     int             // of unsettled; 0: none
	waiting   []chan struct{} // publishers that wait for room, each closed once

	dead int
}

// queue returns the queue of a name and makes it if need be.
func (s *Store) queue(name string) *queue {
	if q := s.queues[name]; q != nil {
		return q
	}
	q := &queue{
		store: s,
		name:  name,
		lines: make(map[string]*line),
		early: heap[*entry]{
			before: func(a, b *entry) bool { return a.place < b.place },
			slot:   func(e *entry) *int { return &e.slot },
		},
		running: heap[*delivery]{
			before: func(a, b *delivery) bool { return a.lease.Before(b.lease) },
			slot:   func(d *delivery) *int { return &d.slot },
		},
	}
	s.queues[name] = q
	return q
}

// enter puts an entry at the end of the queue.
func (q *queue) enter(e *entry, now time.Time) {
	q.store.places++
	e.place = q.store.places
	if e.job.OrderingKey != "" && !q.join(e) {
		return
	}
	e.since = now
	q.ready.push(e)
	q.rouse()
}

// resume makes an entry ready where it was before.
func (q *queue) resume(e *entry, now time.Time) {
	e.since = now
	q.early.push(e)
	q.rouse()
}

// take removes and returns the ready entry that starts next, nil if there is none.
func (q *queue) take() *entry {
	fresh, some := q.ready.first()
	if e, ok := q.early.first(); ok && (!some || e.place < fresh.place) {
		q.early.remove(e)
		return e
	}
	if some {
		q.ready.pop()
	}
	return fresh
}

// leave forgets an entry that is settled, and frees its key and its room.
func (q *queue) leave(e *entry, now time.Time) {
	if e.line != nil {
		q.quit(e, now)
	}
	q.unsettled--
	q.admit()
}

// rouse wakes, of the workers that wait for this queue, the one that has had nothing of
// it for longest. What it leaves it passes on. If all were woken the same one could
// always be first, and one that knows no such task would keep a job from all others.
func (q *queue) rouse() {
	for _, s := range q.readers {
		if s.asleep && slices.Contains(s.waits, q) {
			s.rouse()
			return
		}
	}
}

// served puts a worker behind all others, and lets the next one have what is left.
func (q *queue) served(by *subscription, got bool) {
	if i := slices.Index(q.readers, by); got && i >= 0 {
		q.readers = append(slices.Delete(q.readers, i, i+1), by)
	}
	if q.ready.count > 0 || q.early.len() > 0 {
		q.rouse()
	}
}

// rouseFor wakes the workers of this queue that would sleep beyond a time.
func (q *queue) rouseFor(at time.Time) {
	for _, s := range q.readers {
		s.rouseFor(at)
	}
}

// full says that clients have to wait.
func (q *queue) full() bool { return q.bound > 0 && q.unsettled >= q.bound }

// admit lets the first of the waiting publishers try, if there is room.
func (q *queue) admit() {
	if len(q.waiting) > 0 && !q.full() {
		close(q.waiting[0])
		q.waiting = q.waiting[1:]
	}
}

// giveUp takes a publisher that waits no longer off the list, and passes on what
// it may have been told.
func (q *queue) giveUp(room chan struct{}) {
	i := slices.Index(q.waiting, room)
	if i < 0 {
		q.admit()
		return
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
}
