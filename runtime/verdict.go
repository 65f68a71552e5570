package backstage

import (
	"fmt"
	"time"
)

// A handler says by the error it returns what is to become of its job. An error
// that is none of those below is a failure, after which the job is retried while
// attempts are left. They are found with errors.As, so they may be wrapped.

// Permanent marks an error after which a retry is useless: the job is
// dead-lettered at once. It returns nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// RetryAfter marks a failure after which the job is retried after d instead of
// its backoff, while attempts are left. A negative d is zero. It returns nil for
// nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{err, max(0, d)}
}

// Snooze asks for the job to be run again after d, counting as nothing: not as an
// attempt, not as a failure. It is bounded by the task's max age.
func Snooze(d time.Duration) error { return &snoozeError{max(0, d)} }

// Skip ends the job as done without an effect, and reports why. The next jobs
// that the handler recorded are dropped. An interceptor returns it to keep the
// handler from being called.
func Skip(reason string) error { return &skipError{reason: reason} }

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

type retryAfterError struct {
	err  error
	wait time.Duration
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

type snoozeError struct{ wait time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %v", e.wait) }

type skipError struct {
	reason string
	guard  string
}

func (e *skipError) Error() string { return "skipped: " + e.reason }
