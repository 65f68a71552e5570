package memory

import "time"

// line is the jobs of one ordering key of a queue, in the order in which they
// entered it. Only the first may be ready, run or wait for a retry.
type line struct {
	first, last *entry
}

// join puts an entry at the end of its line and reports whether it is the first.
func (q *queue) join(e *entry) bool {
	l := q.lines[e.job.OrderingKey]
	e.line = l
	if l != nil {
		l.last.next, l.last = e, e
		return false
	}
	e.line = &line{first: e, last: e}
	q.lines[e.job.OrderingKey] = e.line
	return true
}

// quit takes the first entry out of its line; the next one becomes ready.
func (q *queue) quit(e *entry, now time.Time) {
	l := e.line
	e.line, l.first, e.next = nil, e.next, nil
	if l.first == nil {
		delete(q.lines, e.job.OrderingKey)
		return
	}
	q.resume(l.first, now)
}
