package provider

import "errors"

var (
	// ErrSettled is returned for a settlement of a kind other than the first, and
	// for any settlement of a delivery whose settlement is on record.
	ErrSettled = errors.New("delivery is settled")
	// ErrLeaseLost is returned for a delivery that is no longer ours. Settlements
	// return it as a *LostError.
	ErrLeaseLost = errors.New("lease is lost")
	// ErrClosed is returned by calls on what was closed, and is why they refused
	// jobs.
	ErrClosed = errors.New("closed")
	// ErrDedupePending is why a job was refused whose key another job had claimed
	// without confirming it, for as long as the caller waited.
	ErrDedupePending = errors.New("dedupe key is pending for another job")
	// ErrQueueFull is why a job was refused for which a bounded queue had no room
	// until the caller's context ended.
	ErrQueueFull = errors.New("queue is full")
	// ErrDeadFull is returned by DeadLetter where the store has as many dead letters
	// as its bound allows. The job is not settled: replay or discard some letters,
	// and settle it again.
	ErrDeadFull = errors.New("dead letters are full")
	// ErrIncomplete is why a job is refused, or its bytes are no record, without an
	// id, a task or a queue.
	ErrIncomplete = errors.New("job has no id, no task or no queue")
	// ErrNotFound is returned for a dead letter that is not there (any more).
	ErrNotFound = errors.New("not found")
)

// LostError is ErrLeaseLost (errors.Is) from a settlement that carried jobs with
// it: next jobs, or the copy of a retry, a dead letter or a release.
type LostError struct {
	// Stored says what became of those jobs: OutcomeStored if they are on
	// record all the same, OutcomeRefused if they are not, OutcomeUnknown.
	Stored Outcome
}

// Error says that the lease is lost and what became of the jobs.
func (e *LostError) Error() string {
	return ErrLeaseLost.Error() + " (what it carried: " + e.Stored.String() + ")"
}

// Is makes the error an ErrLeaseLost.
func (e *LostError) Is(target error) bool { return target == ErrLeaseLost }
