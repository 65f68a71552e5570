package backstage

import (
	"cmp"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// The built-in policy: what holds when neither the call, nor the task, nor the
// service says otherwise.
const (
	DefaultTimeout     = time.Minute
	DefaultMaxAttempts = 5
	DefaultMaxAge      = 7 * 24 * time.Hour
	DefaultBackoffBase = time.Second
	DefaultBackoffCap  = time.Minute
)

// Policy says how jobs of a task are run. It is taken from the code of the worker
// that runs them, so that a deploy changes it for waiting jobs too.
type Policy struct {
	// Timeout bounds one attempt: its context ends then. Defaults to
	// DefaultTimeout.
	Timeout time.Duration
	// MaxAttempts is how many runs may end in failure, the first included.
	// Defaults to DefaultMaxAttempts.
	MaxAttempts int
	// Backoff is the wait before a retry.
	Backoff Backoff
	// MaxAge is the time from first due after which there is no retry any more.
	// Defaults to DefaultMaxAge.
	MaxAge time.Duration
}

// over returns the policy for one job: what was given at enqueue wins, and what
// is not set is the default.
func (p Policy) over(o provider.Overrides) Policy {
	p.Timeout = cmp.Or(o.Timeout, p.Timeout, DefaultTimeout)
	p.MaxAttempts = cmp.Or(int(o.MaxAttempts), p.MaxAttempts, DefaultMaxAttempts)
	p.MaxAge = cmp.Or(o.MaxAge, p.MaxAge, DefaultMaxAge)
	if o.BackoffBase > 0 {
		p.Backoff = Backoff{Base: o.BackoffBase, Cap: o.BackoffCap}
	}
	p.Backoff = p.Backoff.orDefault()
	return p
}
