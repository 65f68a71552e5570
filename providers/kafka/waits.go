package kafka

import (
	"context"
	"fmt"
	"time"
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
