package backstage

import "github.com/backstage-go/backstage/runtime/provider"

// Outcome is what became of a job that was enqueued.
type Outcome = provider.Outcome

// The outcomes of an enqueue.
const (
	// Unknown: the job may be stored or not. Enqueue the same Job, or one with
	// the same id, again; both copies may run.
	Unknown = provider.OutcomeUnknown
	// Stored: the broker has the job, with the durability asked of it.
	Stored = provider.OutcomeStored
	// Duplicate: an earlier job holds the dedupe key.
	Duplicate = provider.OutcomeDuplicate
	// Refused: the job is not stored.
	Refused = provider.OutcomeRefused
)

// Receipt says what became of one job.
type Receipt struct {
	// ID is the job's id, or, if Duplicate, that of the earlier job that holds
	// the dedupe key, which may have finished.
	ID string
	// Duplicate says that an earlier job holds the dedupe key, and this one is not
	// stored.
	Duplicate bool
	// Outcome is Stored or Duplicate; Refused or Unknown beside an error.
	Outcome Outcome
	// Err is the *EnqueueError beside Refused or Unknown, nil otherwise.
	Err error
}
