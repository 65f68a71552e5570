package backstage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Health returns nil while the worker is well: it runs, the provider is well,
// delayed jobs are promoted, settlements succeed, and fewer than half of its
// handlers are stuck. Otherwise the error says what is not well, all of it.
func (w *Worker) Health(ctx context.Context) error {
	w.mu.Lock()
	s := w.shift
	w.mu.Unlock()
	if s == nil {
		return errors.New("worker does not run")
	}
	return errors.Join(w.broker.Health(ctx), s.health())
}

// health is the part of it that this worker knows itself.
func (s *shift) health() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, what := range slices.Sorted(maps.Keys(s.troubles)) {
		errs = append(errs, fmt.Errorf("%s: %w", what, s.troubles[what]))
	}
	if s.stuck > 0 && 2*s.stuck >= s.cfg.Concurrency {
		errs = append(errs, fmt.Errorf("%d of %d handlers are stuck", s.stuck, s.cfg.Concurrency))
	}
	return errors.Join(errs...)
}

// trouble records what health reports; a nil error takes it back.
func (s *shift) trouble(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.troubles, what)
		return
	}
	s.troubles[what] = err
}
