package embedded

import (
	"errors"
	"slices"

	"github.com/backstage-go/backstage/runtime/provider"
)

// rescue saves of a batch that failed what can be saved.
func (w *writer) rescue(b *batch, err error) {
	switch {
	case primary(err) == codeFull:
		w.rescueFromFull(b)
	case errors.Is(err, errStopped):
		w.fail(b, provider.ErrClosed)
	case concernsFile(err):
		w.fail(b, err)
	default:
		w.oneByOne(b)
	}
}

// rescueFromFull does what needs no room first, because it gives some back, and
// publishes last. Publishing calls share their fate: none would find what the
// others did not.
func (w *writer) rescueFromFull(b *batch) {
	light, heavy, publications := b.byNeed()
	if err := w.try(light); err != nil {
		w.oneByOne(light)
	}
	w.oneByOne(heavy)
	if err := w.try(publications); err != nil {
		w.fail(publications, err)
	}
}

// try does a batch in a transaction of its own, and answers it if that went well.
func (w *writer) try(b *batch) error {
	if b.empty() {
		return nil
	}
	t, err := w.attempt(b, false)
	if err == nil {
		w.after(b, t)
	}
	return err
}

// oneByOne does each piece in a transaction of its own, so that one cannot spoil
// the others'. Receivers come last, as in a batch, and look into all their lanes:
// what the others bring is theirs.
func (w *writer) oneByOne(b *batch) {
	for _, r := range b.receptions {
		r.sweep = true
	}
	all, receivers := slices.Collect(b.pieces()), len(b.receptions)
	for _, p := range slices.Concat(all[receivers:], all[:receivers]) {
		single := new(batch)
		single.add(p)
		if err := w.try(single); err != nil {
			w.fail(single, err)
		}
	}
}
