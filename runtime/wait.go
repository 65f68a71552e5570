package backstage

import (
	"context"
	"time"
)

// sleep waits, and reports whether it was not cut off.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// growing returns base doubled n times, at most limit.
func growing(base, limit time.Duration, n int32) time.Duration {
	return Backoff{Base: base, Cap: limit}.Ceiling(int(min(n, 62)) + 1)
}
