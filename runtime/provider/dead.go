package provider

import (
	"context"
	"time"
)

// DeadLetters is the store of dead-lettered jobs. They stay until they are
// replayed or discarded.
type DeadLetters interface {
	// List returns dead letters that match, newest first, and the page to ask
	// for next; an empty one means that this was the last. The first page is "";
	// one that List never returned is an error that says so.
	List(ctx context.Context, filter DeadFilter, page string) (letters []DeadLetter, next string, err error)
	// Get returns the dead letter at an address, or ErrNotFound with the address.
	Get(ctx context.Context, address string) (DeadLetter, error)
	// Replay returns dead letters to their queues, as Job.Replay says, and says
	// for each what became of it. A job with a dedupe key takes its claim again,
	// where claims are the provider's own; if another job holds it, the answer is
	// OutcomeDuplicate and the dead letter stays. One that is not there is
	// OutcomeRefused with ErrNotFound; one that was never a record is
	// OutcomeRefused with ErrNoRecord, and can only be discarded. A replay that
	// is cut off leaves each job in one of the two places, or a copy in both,
	// never in none.
	Replay(ctx context.Context, addresses ...string) ([]Stored, error)
	// Discard removes dead letters, and says for each what became of it:
	// OutcomeStored if the removal is on record, otherwise as Replay does.
	Discard(ctx context.Context, addresses ...string) ([]Stored, error)
}

// DeadFilter selects dead letters. Zero fields select all.
type DeadFilter struct {
	// Queue is where the job was.
	Queue string
	// Task is its task's name on the wire.
	Task string
	// Class is the class of its last failure.
	Class string
	// JobID is the job's id.
	JobID string
	// Since and Until bound when it died, Since included, Until not.
	Since, Until time.Time
	// Limit is the most letters a page. Zero: 100.
	Limit int
}

// Match reports whether a letter passes all of the filter but its Limit.
func (f *DeadFilter) Match(l *DeadLetter) bool {
	return (f.Queue == "" || f.Queue == l.Queue) &&
		(f.Task == "" || f.Task == l.Job.Task) &&
		(f.Class == "" || f.Class == l.Failure.Class) &&
		(f.JobID == "" || f.JobID == l.Job.ID) &&
		(f.Since.IsZero() || !l.At.Before(f.Since)) &&
		(f.Until.IsZero() || l.At.Before(f.Until))
}

// DeadLetter is one job that was given up.
type DeadLetter struct {
	// Address finds the letter in this store. Two letters of one job have two.
	Address string
	// Queue is where it was.
	Queue string
	// At is when it died, by the store's clock where it has one.
	At time.Time
	// Failure is why: the last of the job's history.
	Failure Failure
	// Job is the job, with its counters and history. Zero if Raw is set.
	Job Job
	// Raw holds the bytes, if they were no record.
	Raw []byte
}
