package provider

import (
	"strconv"
	"strings"
	"time"
)

// Job is one instance of a task: what is stored, and, on a delivery, how it has
// fared. It is a value; the slices and maps in it are never modified once they
// are in a Job, so copies may share them.
type Job struct {
	// Format is the record's format: 1 today, and what Marshal writes for 0. A
	// reader parks a job of a higher one.
	Format uint32
	// Requires names the features that a reader must know to run the job.
	Requires []string

	// ID identifies the job through retries, releases and replays.
	ID string
	// Task is the task's name on the wire.
	Task string
	// Queue is where the job waits.
	Queue string
	// Payload is the marshalled message. Providers never look inside.
	Payload []byte

	// Enqueued is when the job was made, by the clock of who made it.
	Enqueued time.Time
	// FirstDue is when it could first start: Enqueued and the delay of then.
	FirstDue time.Time
	// Delay is how long the store keeps the job, from when it takes it, before
	// the job may start. It is an instruction to the store and not part of the
	// record. Zero: at once.
	Delay time.Duration
	// Expires is the time from FirstDue within which the job must start. Zero:
	// whenever.
	Expires time.Duration
	// OrderingKey orders jobs within their queue. Empty: no order.
	OrderingKey string
	// Dedupe is the claim that goes with the job. The zero value: none.
	Dedupe Dedupe
	// Overrides are policies given at enqueue, which win over the worker's code.
	Overrides Overrides

	// Counters say how the job has fared so far.
	Counters Counters
	// History holds the last failures, at most MaxHistory, oldest first.
	History []Failure
	// Replays holds the last returns out of the dead letters, at most MaxHistory.
	Replays []Replay

	// Root is the id of the first job of the chain; empty if this is it.
	Root string
	// Parent is the id of the job that made this one; empty if a client did.
	Parent string
	// Edge names the declared edge that led here; empty if a client did.
	Edge string
	// Ordinal tells equal next jobs of one parent apart.
	Ordinal int32

	// Headers travel with the job.
	Headers map[string]string
	// Correlation, Trace, Actor and Tenant are kept for searching and tracing;
	// Codec and KeyID say how Payload was encoded. Nothing in a provider reads
	// them.
	Correlation, Trace, Actor, Tenant, Codec, KeyID string

	rest []byte // fields of a newer version
}

// Dedupe is the claim of a job: while it holds, another job with the same key is
// a duplicate.
type Dedupe struct {
	// Key is the claim's key, scoped by the task. Empty: no claim.
	Key string
	// For is how long it holds from enqueue. Ignored with UntilDone.
	For time.Duration
	// UntilDone holds the claim until the job is acknowledged, dead-lettered or
	// discarded.
	UntilDone bool
}

// Overrides are policies that travel with a job. A zero field is not set.
type Overrides struct {
	// Timeout bounds one attempt.
	Timeout time.Duration
	// MaxAttempts is how many runs may end in failure, the first included.
	MaxAttempts int32
	// MaxAge is the time from FirstDue after which there is no retry any more.
	MaxAge time.Duration
	// BackoffBase and BackoffCap bound the wait before a retry; equal ones make
	// it constant.
	BackoffBase, BackoffCap time.Duration
}

// Counters say how a job has fared.
type Counters struct {
	// Failures counts runs that ended in failure; the attempt is Failures + 1.
	Failures int32
	// Crashes counts runs that never reached an outcome because their worker
	// died. On a delivery it includes what the broker counted since the record
	// was written; where JobFacts.ExactCrashes is false it is an upper bound.
	Crashes int32
	// Snoozes counts runs that asked to be run later.
	Snoozes int32
	// Parks counts how often the job was put aside because no one could run it.
	Parks int32
	// Starts counts starts that were put on record beforehand (see StartedAgain) and of
	// which no outcome is on record.
	Starts int32
	// StartCrashes is what Crashes was when the last of Starts was recorded. A
	// delivery with Starts > 0 and Crashes == StartCrashes is the recorded start
	// itself. When that had an outcome, it is less than Crashes.
	StartCrashes int32
	// Replays counts returns out of the dead letters.
	Replays int32
}

// Failure is one run that ended badly, or why a job was dead-lettered.
type Failure struct {
	// At is when, by the worker's clock.
	At time.Time
	// Class is a word for what happened; the runtime's are constants here.
	Class string
	// Message is the error's text. It is cut to MaxFailureText when stored.
	Message string
	// Worker is who ran the job.
	Worker string
	// Attempt is the number of the failed run; 0 if no run failed.
	Attempt int32
	// Detail is more text, such as a stack. It is cut like Message.
	Detail string

	rest []byte
}

// The classes of failures. The first four are failures of a run, which may be
// retried; the others say why a job was dead-lettered.
const (
	ClassFailed  = "failed"  // the handler returned an error
	ClassTimeout = "timeout" // the handler returned an error after its deadline
	ClassPanic   = "panic"   // the handler panicked
	ClassExit    = "exit"    // the handler called runtime.Goexit

	ClassPermanent   = "permanent"    // a retry is useless: the handler said so, or a next job is invalid
	ClassExhausted   = "exhausted"    // max_attempts runs failed
	ClassTooOld      = "too old"      // it failed or snoozed, and its next run would come after max age
	ClassExpired     = "expired"      // it did not start in time
	ClassUndecodable = "undecodable"  // its payload is not the task's message
	ClassUnknownTask = "unknown task" // no handler turned up until max age
	ClassCrashed     = "crashed"      // its workers died, again and again
	ClassNoRecord    = "no record"    // the bytes in the queue are not ours
)

// Replay is one return of a job out of the dead letters.
type Replay struct {
	// At is when.
	At time.Time
	// Failures and Crashes are what the counters were before they started again.
	Failures, Crashes int32

	rest []byte
}

const (
	// MaxHistory is how many failures and how many replays a record keeps.
	MaxHistory = 10
	// MaxFailureText is the most bytes of a failure's Message, and of its Detail.
	MaxFailureText = 4 << 10
)

// Why says what a settlement of another run is for.
type Why int

const (
	// FailedAgain: the run failed and counts. Again.Failure says how.
	FailedAgain Why = iota + 1
	// SnoozedAgain: the handler asked to be run later. It counts as nothing.
	SnoozedAgain
	// ParkedAgain: nobody here can run the job now. It counts as nothing.
	ParkedAgain
	// StartedAgain: the job is a suspect whose crashes are an upper bound, and
	// its next start is put on record before it happens. The copy is delivered
	// like any other; if it is not a redelivery it may run at once.
	StartedAgain
)

// String returns what happened, in a word or two.
func (w Why) String() string {
	switch w {
	case 0:
		return "none"
	case FailedAgain:
		return "failed"
	case SnoozedAgain:
		return "snoozed"
	case ParkedAgain:
		return "parked"
	case StartedAgain:
		return "start recorded"
	}
	return "why " + strconv.Itoa(int(w))
}

// Again says how a job is to be run another time.
type Again struct {
	// Why is what happened.
	Why Why
	// After is how long to wait, by the store's clock. Zero: at once.
	After time.Duration
	// Failure describes the run, for FailedAgain.
	Failure Failure
}

// After returns the job as it is stored for another run: its counters and history
// brought up to date, its Delay set.
func (j Job) After(again Again) Job {
	switch again.Why {
	case FailedAgain:
		j.Counters.startEnded()
		j.Counters.Failures++
		j.History = appendLast(j.History, again.Failure.cut())
	case SnoozedAgain:
		j.Counters.startEnded()
		j.Counters.Snoozes++
	case ParkedAgain:
		j.Counters.Parks++
	case StartedAgain:
		j.Counters.Starts++
		j.Counters.StartCrashes = j.Counters.Crashes
	}
	j.Delay = again.After
	return j
}

// Dead returns the job as it is stored in the dead letters: the failure is the
// last of its history, and a failed run is counted.
func (j Job) Dead(f Failure) Job {
	j.Counters.Failures = max(j.Counters.Failures, f.Attempt)
	j.History = appendLast(j.History, f.cut())
	j.Delay = 0
	return j
}

// Replay returns the job as it is stored when it leaves the dead letters at a
// time: same id, counters starting again, history kept.
func (j Job) Replay(at time.Time) Job {
	j.Replays = appendLast(j.Replays, Replay{At: at, Failures: j.Counters.Failures, Crashes: j.Counters.Crashes})
	j.Counters = Counters{Replays: j.Counters.Replays + 1}
	j.FirstDue = at
	j.Delay = 0
	return j
}

// Started reports whether the job has run before. To be parked is not to run.
func (j *Job) Started() bool {
	c := &j.Counters
	return c.Failures > 0 || c.Crashes > 0 || c.Snoozes > 0 || c.Starts > 0
}

// Check returns ErrIncomplete for what can be no job in any store.
func (j *Job) Check() error {
	if j.ID == "" || j.Task == "" || j.Queue == "" {
		return ErrIncomplete
	}
	return nil
}

// SameStamp reports whether two jobs are copies of one job in one state: the same id and
// task with the same counters, crashes aside. A store of held jobs replaces the one by
// the other, whatever else is in them.
func (j *Job) SameStamp(other *Job) bool {
	return j.ID == other.ID && j.Task == other.Task && j.Counters.Stamp() == other.Counters.Stamp()
}

// Stamp returns the counters without those that change when a job is only
// delivered again: two deliveries with one stamp are of one state of the job.
func (c Counters) Stamp() Counters {
	c.Crashes, c.StartCrashes = 0, 0
	return c
}

// RecordedStart reports whether this delivery is a start that was put on record
// and has not been delivered before.
func (c Counters) RecordedStart() bool {
	return c.Starts > 0 && c.Crashes == c.StartCrashes
}

// startEnded notes that this delivery had an outcome: if it was a recorded start, that
// says nothing against the job any more.
func (c *Counters) startEnded() {
	if c.RecordedStart() {
		c.Starts, c.StartCrashes = c.Starts-1, c.Crashes-1
	}
}

// appendLast returns a new slice with the last MaxHistory elements; the old one
// may be shared.
func appendLast[T any](list []T, last T) []T {
	if n := len(list) - MaxHistory + 1; n > 0 {
		list = list[n:]
	}
	return append(list[:len(list):len(list)], last)
}

// cut makes the texts of a failure fit into a record.
func (f Failure) cut() Failure {
	f.Class, f.Message = cutText(f.Class), cutText(f.Message)
	f.Worker, f.Detail = cutText(f.Worker), cutText(f.Detail)
	return f
}

// cutText never makes a text longer, so that what is cut stays cut.
func cutText(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), MaxFailureText)], "?")
}
