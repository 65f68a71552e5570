package backstage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/backstage-go/backstage/runtime/provider"
)

var (
	// ErrLeaseLost is the cause (context.Cause) of a handler's context that was
	// cancelled because the job is no longer this worker's: another may run it.
	ErrLeaseLost = provider.ErrLeaseLost
	// ErrTimeout is the cause of a handler's context that reached its deadline.
	ErrTimeout = errors.New("the attempt's timeout has passed")
	// ErrShutdown is the cause of a handler's context that was cancelled because
	// the worker stops and its grace period is over.
	ErrShutdown = errors.New("the worker is shutting down")
	// ErrDedupePending is why a job was refused whose dedupe key another job had
	// claimed without being stored yet, for as long as the caller waited. Try
	// again.
	ErrDedupePending = provider.ErrDedupePending
	// ErrQueueFull is why a job was refused for which a bounded queue had no room
	// until the caller's context ended.
	ErrQueueFull = provider.ErrQueueFull

	errZeroJob = errors.New("the job is the zero Job; make it with generated code")
	errOther   = errors.New("not sent, because another job of the batch is invalid")
)

// EnqueueError says why one job was not enqueued, or not replayed. Outcome is
// Refused (the job is not stored) or Unknown (it may be); ID is what to try again
// with.
type EnqueueError struct {
	// ID is the job's. Empty for the zero Job and for a dead letter that was not
	// found.
	ID string
	// Task is the name of its task. Empty like ID.
	Task string
	// Address is that of the dead letter which was to be replayed; empty for an
	// enqueue.
	Address string
	// Outcome is Refused or Unknown.
	Outcome Outcome
	// Err is the reason.
	Err error
}

// Error says which job, whether it is stored, and why not.
func (e *EnqueueError) Error() string {
	what, why := strings.TrimSpace("enqueue "+jobName(e.Task, e.ID)), withoutTask(e.Err, e.Task)
	if e.Address != "" {
		letter := fmt.Sprintf("dead letter %q", e.Address)
		why = strings.TrimPrefix(why, letter+": ") // some providers name it too
		what = "replay " + letter
		if name := jobName(e.Task, e.ID); name != "" {
			what += " (" + name + ")"
		}
	}
	stored := "not stored"
	if e.Outcome == Unknown {
		stored = "perhaps stored"
	}
	return what + ": " + stored + ": " + why
}

// jobName names a job by what is known of it.
func jobName(task, id string) string { return strings.TrimSpace(task + " " + id) }

// Unwrap returns the reason.
func (e *EnqueueError) Unwrap() error { return e.Err }

// unsentError is the errors of the jobs that were not sent because of another in
// their batch: one line for all.
type unsentError struct{ errs []error }

func (e *unsentError) Error() string {
	if len(e.errs) == 1 {
		return "1 other job of the batch was not sent for that"
	}
	return fmt.Sprintf("%d other jobs of the batch were not sent for that", len(e.errs))
}

func (e *unsentError) Unwrap() []error { return e.errs }

// EmptyKeyError says that a field of a key template has no value.
type EmptyKeyError struct {
	// Task is the name of the task.
	Task string
	// Key is the option: "dedupe" or "ordering_key".
	Key string
	// Field is the field's path in the payload.
	Field string
}

// Error names the task, the option and the field, and says what to do.
func (e *EmptyKeyError) Error() string {
	return fmt.Sprintf("task %s: %s: field %q is empty; set it, or write {%s?} in the template if an empty one is meant",
		e.Task, e.Key, e.Field, e.Field)
}

// inKey adds to an error of a key template where it is.
func inKey(err error, task, key string) error {
	var empty *EmptyKeyError
	if errors.As(err, &empty) {
		return &EmptyKeyError{Task: task, Key: key, Field: empty.Field}
	}
	return fmt.Errorf("task %s: %s: %w", task, key, err)
}

// TooLargeError says that a payload is larger than the limit.
type TooLargeError struct {
	// Task is the name of the task.
	Task string
	// Size and Limit are in bytes.
	Size, Limit int
}

// Error names the task and both sizes.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("task %s: payload has %d bytes, the limit is %d", e.Task, e.Size, e.Limit)
}

// MissingError says that a provider lacks what a task needs. Clients and workers
// return it when they are made or started, a call that alone needs it when it is
// made, with nothing stored.
type MissingError struct {
	// Provider is the provider's name.
	Provider string
	// Capability is what it lacks: "Delays", "Claims", "order per key".
	Capability string
	// Need is what needs it, such as "retries of task a.b.C".
	Need string
	// Remedy says what to do.
	Remedy string
}

// Error returns all of it in one sentence.
func (e *MissingError) Error() string {
	return fmt.Sprintf("provider %s has no %s, which %s need; %s", e.Provider, e.Capability, e.Need, e.Remedy)
}
