package embedded

import (
	"iter"
	"slices"
)

// batch is what the writer puts into one transaction.
type batch struct {
	settlements  []*settlement
	errands      []*errand
	extensions   []*extension
	publications []*publication
	receptions   []*reception
}

// add sorts a piece in.
func (b *batch) add(p piece) {
	switch p := p.(type) {
	case *settlement:
		b.settlements = append(b.settlements, p)
	case *errand:
		b.errands = append(b.errands, p)
	case *extension:
		b.extensions = append(b.extensions, p)
	case *publication:
		b.publications = append(b.publications, p)
	case *reception:
		b.receptions = append(b.receptions, p)
	}
}

func (b *batch) empty() bool {
	return len(b.settlements)+len(b.errands)+len(b.extensions)+len(b.publications)+len(b.receptions) == 0
}

// pieces are all of them. Receivers come first, because what they start is what keeps
// the next transaction full.
func (b *batch) pieces() iter.Seq[piece] {
	return func(yield func(piece) bool) {
		_ = each(b.receptions, yield) && each(b.extensions, yield) && each(b.settlements, yield) &&
			each(b.errands, yield) && each(b.publications, yield)
	}
}

// each yields the elements of a list, and reports whether to go on.
func each[P piece](list []P, yield func(piece) bool) bool {
	for _, p := range list {
		if !yield(p) {
			return false
		}
	}
	return true
}

// join takes over the pieces of another.
func (b *batch) join(late *batch) {
	b.settlements = append(b.settlements, late.settlements...)
	b.errands = append(b.errands, late.errands...)
	b.extensions = append(b.extensions, late.extensions...)
	b.publications = append(b.publications, late.publications...)
	b.receptions = append(b.receptions, late.receptions...)
}

// apply does everything in a transaction but for what start does. What ends jobs makes
// room for what brings them, and so comes first.
func (b *batch) apply(t *transaction) {
	t.settle(b.settlements)
	for _, e := range b.errands {
		e.own = e.run(t)
	}
	t.extend(b.extensions)
}

// start takes in what clients bring, writes it, and hands it out. Clients come in their
// order, those that waited for room first.
func (b *batch) start(t *transaction) {
	for _, p := range b.publications {
		p.stage(t)
	}
	t.incoming.flush()
	if b.promotes(t.w.store) {
		t.promote(scopeOwn)
	}
	for _, r := range b.receptions {
		r.stage(t)
	}
	t.incoming.settleDown()
}

// promotes reports whether jobs of the file's own that are due have to be moved for
// these receivers: before any of them looks, because nobody else does it.
func (b *batch) promotes(s *store) bool {
	return slices.ContainsFunc(b.receptions, func(r *reception) bool { return r.sweep }) && !s.ownDelays()
}

// finish tells all what became of the transaction.
func (b *batch) finish(w *writer, err error) {
	for p := range b.pieces() {
		p.finish(w, err)
	}
}

// byNeed splits a batch that found the disk full: what only gives room back, what
// needs some, and what clients want to add.
func (b *batch) byNeed() (light, heavy, publications *batch) {
	light, heavy, publications = new(batch), new(batch), &batch{publications: b.publications}
	b.publications = nil
	for p := range b.pieces() {
		if p.light() {
			light.add(p)
		} else {
			heavy.add(p)
		}
	}
	return light, heavy, publications
}
