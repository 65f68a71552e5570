package backstage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// cancelledGrace is how long a stopping worker waits for handlers after it has
// cancelled them, and then for settlements.
const cancelledGrace = 5 * time.Second

// stop ends a session: it waits for handlers, cancels those that are left,
// settles or releases, and closes the subscription.
func (s *session) stop() error {
	s.cfg.Logger.Info("worker stopping: waiting for its handlers", "worker", s.cfg.Name, "handlers", s.left(), "at_most", s.cfg.ShutdownGrace)
	if !s.quiet(s.cfg.ShutdownGrace) {
		s.cancelHandler(ErrShutdown)
		s.quiet(cancelledGrace)
	}
	s.cancelHandler(ErrShutdown)
	s.cancelSettle()
	close(s.quit)
	s.quiet(time.Second) // settlements that were cut off return

	left := s.left()
	if left == 0 {
		s.pool.Wait()
	}
	ctx, cancel := context.WithTimeout(context.Background(), cancelledGrace)
	defer cancel()
	err := s.sub.Close(ctx)
	if err != nil {
		err = fmt.Errorf("close subscription: %w", s.store.named(err))
	}
	if left += int(s.cutOff.Load()); left > 0 {
		err = errors.Join(err, fmt.Errorf("%d jobs were not settled before the worker stopped; they are delivered again after their lease", left))
	}
	return err
}

// quiet waits until no delivery is unsettled, at most for a while.
func (s *session) quiet(most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for s.left() > 0 {
		select {
		case <-s.changed:
		case <-timer.C:
			return s.left() == 0
		}
	}
	return true
}

func (s *session) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.active)
}
