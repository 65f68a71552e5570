package backstage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// cancelledGrace is how long a stopping worker takes at most after the grace
// period: three fifths for the handlers that it has cancelled, one for settlements
// that are cut off, one to close. With the default grace period that is well
// below the 30 seconds after which Kubernetes kills.
const cancelledGrace = 5 * time.Second

// stop ends a shift: it waits for handlers, cancels those that are left,
// settles or releases, and closes the subscription.
func (s *shift) stop() error {
	s.cfg.Logger.Info("worker stopping: waiting for its handlers", "worker", s.cfg.Name, "handlers", s.left(), "at_most", s.cfg.ShutdownGrace)
	end := time.Now().Add(min(s.cfg.ShutdownGrace, maxDelay) + cancelledGrace) // no sum of these overflows
	if !s.quiet(s.cfg.ShutdownGrace) {
		s.cancelHandler(ErrShutdown)
		s.quiet(time.Until(end) - 2*cancelledGrace/5)
	}
	s.cancelHandler(ErrShutdown)
	s.cancelSettle()
	close(s.quit)
	s.quiet(time.Until(end) - cancelledGrace/5) // settlements that were cut off return

	left := s.left()
	if left == 0 {
		s.pool.Wait()
	}
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	err := s.sub.Close(ctx)
	if err != nil {
		err = fmt.Errorf("close subscription: %w", s.broker.named(err))
	}
	if left += int(s.cutOff.Load()); left > 0 {
		err = errors.Join(err, fmt.Errorf("%d jobs were not settled before the worker stopped; they are delivered again after their lease", left))
	}
	return err
}

// waitForHooks waits for calls of OnStuck, for a moment: they are not ours, and
// one that blocks must not keep the worker from its end.
func (s *shift) waitForHooks() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.hooks.Wait()
	}()
	select {
	case <-done:
	case <-time.After(cancelledGrace / 5):
	}
}

// quiet waits until no delivery is unsettled, at most for a while.
func (s *shift) quiet(most time.Duration) bool {
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

func (s *shift) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.active)
}
