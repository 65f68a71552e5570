package embedded

import (
	"slices"

	"github.com/backstage-go/backstage/runtime/provider"
)

// standby are calls that the writer has looked at and that wait for something.
type standby struct {
	receptions   []*reception
	publications []*publication
	due          bool // they should be tried, even if nothing else waits
}

// collect takes all that stand by into a batch. Their callers may have left.
func (s *standby) collect(b *batch) {
	for _, r := range s.receptions {
		if r.take() {
			r.sweep = r.sweep || s.due
			b.receptions = append(b.receptions, r)
		}
	}
	for _, c := range s.publications {
		if c.take() {
			b.publications = append(b.publications, c)
		}
	}
	clear(s.receptions)
	clear(s.publications)
	s.receptions, s.publications, s.due = s.receptions[:0], s.publications[:0], false
}

// meet lets those be tried again whose lanes got something in a transaction that
// they were not in: the file does not tell its writer of what it wrote itself.
func (s *standby) meet(w *writer, lanes map[int64]bool) {
	for _, r := range s.receptions {
		if slices.ContainsFunc(r.lanes, func(q int64) bool { return lanes[q] }) {
			s.due = true
			w.rouse()
			return
		}
	}
}

// sendAway ends the publishing calls that wait, because the provider is closing.
func (s *standby) sendAway(w *writer) {
	waiting := s.publications
	s.publications = nil
	for _, c := range waiting {
		if c.take() {
			c.finish(w, provider.ErrClosed)
		}
	}
}
