package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// How long what the cluster did not do is not tried again, at first and at most.
const (
	firstWait = 20 * time.Millisecond
	lastWait  = time.Second
)

// sleep waits, and reports whether ctx is still on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// waited says why a call could not wait longer, and for what.
func waited(ctx context.Context, why error) error {
	switch {
	case ctx.Err() == nil:
		return why
	case why == nil:
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", ctx.Err(), why)
}

// insist does something until it is done, or fails for good, or ctx ends, or a broker
// could have answered and did not.
func (s *store) insist(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := do(ctx)
		if err == nil {
			return nil
		}
		if !passes(err) || !sleep(ctx, wait) {
			return explained(err)
		}
		if faultOf(err).moved {
			_ = s.topics.refresh(ctx)
		}
	}
}

// outlast does something until it is done, or fails for good, or ctx or the provider
// ends: it lives through an outage, however long.
func (s *store) outlast(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := do(ctx)
		switch {
		case err == nil:
			return nil
		case s.closing.Err() != nil:
			return provider.ErrClosed
		case !passes(err) || !sleep(ctx, wait):
			return err
		}
	}
}
