package provider

import (
	"context"
	"strconv"
	"time"
)

// Jobs stores jobs and hands them out.
type Jobs interface {
	// Publish stores the jobs and says for each, in their order, what became of
	// it. It returns when every outcome is known or ctx has ended; what is not
	// known then is OutcomeUnknown. Jobs of one call that share a queue and an
	// ordering key keep their order.
	//
	// While Provider.Delays is the provider's own, Publish holds jobs with a
	// Delay by itself; while Provider.Claims is, it takes the claim of a job with
	// a Dedupe key in the same step and answers OutcomeDuplicate for a key that
	// another id holds. A claim that the job's own id holds is no obstacle.
	Publish(ctx context.Context, jobs []Job, opts PublishOptions) []Stored
	// Subscribe makes this process a worker on the given lanes. It fails with a
	// *SetupError for what can never work (more lanes than fixed slots, a lease
	// shorter than the broker can do), otherwise with what kept it from
	// connecting before ctx ended. The subscription outlives ctx.
	Subscribe(ctx context.Context, opts SubscribeOptions) (Subscription, error)
	// Facts says what the broker does strongly and what weakly. It is constant.
	Facts() JobFacts
}

// PublishOptions say where published jobs come from. The zero value: from a
// client.
type PublishOptions struct {
	// Accepted marks jobs that are no longer a client's to wait for: held ones
	// that are due, next jobs of a run. A queue's bound does not apply to them,
	// and no claim is taken.
	Accepted bool
	// Claimed says that the jobs' claims were taken in a step of its own: none is
	// taken again.
	Claimed bool
}

// Outcome is what became of a job that was to be stored.
type Outcome int

const (
	// OutcomeUnknown: it may be stored or not. The same id may be tried again.
	OutcomeUnknown Outcome = iota
	// OutcomeStored: the broker has it, with the durability asked of it.
	OutcomeStored
	// OutcomeDuplicate: an earlier job holds its dedupe key. It is not stored.
	OutcomeDuplicate
	// OutcomeRefused: it is not stored.
	OutcomeRefused
)

// String returns the outcome in a word.
func (o Outcome) String() string {
	switch o {
	case OutcomeUnknown:
		return "unknown"
	case OutcomeStored:
		return "stored"
	case OutcomeDuplicate:
		return "duplicate"
	case OutcomeRefused:
		return "refused"
	}
	return "outcome " + strconv.Itoa(int(o))
}

// Stored is what became of one job.
type Stored struct {
	// ID is the job's; empty if it is not known, as that of a dead letter which is
	// not there.
	ID string
	// Outcome is what became of it.
	Outcome Outcome
	// Holder is the id of the job that holds the key, for OutcomeDuplicate.
	Holder string
	// Err says why, for OutcomeRefused and OutcomeUnknown.
	Err error
}

// SubscribeOptions describe a worker to the broker.
type SubscribeOptions struct {
	// Worker is this worker's name, unique among all processes that ever
	// subscribe. Required.
	Worker string
	// Lanes are the queues to serve. At least one; queues that do not exist yet
	// are made.
	Lanes []Lane
	// MaxUnsettled is the most deliveries that the runtime will ever have
	// unsettled at once. A provider may stop a lane earlier by a bound of its
	// own, with an event of kind Paused.
	MaxUnsettled int
	// Lease is how long a delivery is ours without a heartbeat, at least: where it
	// is on record, one that has run out is lost when another worker takes the
	// job over, and not before. Where the broker ties it to a session, the
	// session's timeout is derived from it, so that a dead worker's jobs are taken
	// over within one lease plus five seconds.
	Lease time.Duration
	// LongestRun is the longest timeout of the tasks that the worker runs, for a
	// broker that takes a delivery back from a consumer which holds it longer. A
	// job may carry a longer one of its own. Zero: not known.
	LongestRun time.Duration
	// MaxAge is the longest max age of those tasks, for a broker that deletes by
	// age. A job may carry a longer one of its own. Zero: not known.
	MaxAge time.Duration
}

// Lane is a queue as one worker serves it.
type Lane struct {
	// Queue is the queue's name.
	Queue string
	// Slots is the lane's share of the worker's slots, at least 1. It binds only
	// where JobFacts.FixedSlots is true.
	Slots int
}

// Subscription hands out deliveries to one worker.
type Subscription interface {
	// Receive blocks until any lane has work, then returns between 1 and max
	// deliveries that start now, taken from the lanes in the order given. It is
	// called by one goroutine at a time; lanes are a subset of those subscribed.
	//
	// What a dead worker left in these lanes is taken over inside Receive, at
	// least every two seconds, blocked or not, ahead of the lanes' order, so that
	// nothing is counted as started that is not. It returns within a second of
	// ctx's end, and loses nothing then: it may still return deliveries, with or
	// without an error. It blocks through outages, reconnecting with bounded
	// backoff, and fails only when that is final.
	Receive(ctx context.Context, lanes []string, max int) ([]Delivery, error)
	// Extend is the heartbeat of deliveries of this subscription: their leases
	// start again. One error for each, in order: nil; ErrSettled or nil for one
	// whose settlement is on record or under way; ErrLeaseLost for one that is no
	// longer ours; anything else if it is not known, and the lease may still
	// hold.
	Extend(ctx context.Context, deliveries []Delivery) []error
	// Close ends the subscription. It waits for settlements under way until ctx
	// ends; later ones return ErrClosed. Deliveries that were not settled are
	// delivered again after their lease, or at once where a session held them.
	Close(ctx context.Context) error
}

// Delivery is one run of one job.
//
// The first settlement fixes its kind: another kind returns ErrSettled, and so
// does the same one once it is on record. After an error that is neither
// ErrSettled nor ErrLeaseLost the same one may be called again, with the same
// arguments; ErrLeaseLost, a *LostError, then means: no longer ours, perhaps by
// our own earlier call. A delivery that nobody settles is delivered again after
// its lease, or when its session ends.
type Delivery interface {
	// Job returns the job with its counters, the broker's count of crashes
	// folded in. It must not be modified.
	Job() *Job
	// Lost returns a channel that is closed as soon as the loss of the lease is
	// known. Nil: only Extend tells.
	Lost() <-chan struct{}

	// Ack ends the job. The next jobs are durable before it: in the same step
	// where JobFacts.AtomicHandoff is true and they need no more than the
	// provider's own capabilities, otherwise published first. A next job whose
	// dedupe key another job holds counts as stored; a claim of this job that holds
	// until done ends before, so that a next job may have the same key. Their
	// queue's bound does not apply.
	Ack(ctx context.Context, next []Job) error
	// Retry stores the job for another run, as Job.After says, and ends this one.
	// It is called while Delays is the provider's own, or where JobFacts.Retries
	// says that the provider can do it alone; and, where JobFacts.ExactCrashes is
	// false, with StartedAgain (and no wait) in any case.
	Retry(ctx context.Context, again Again) error
	// DeadLetter stores the job among the dead letters, as Job.Dead says, and
	// ends the run. The job's own claim is freed. A dead-letter store that is
	// full or refuses is an error; the job is then not settled.
	DeadLetter(ctx context.Context, f Failure) error
	// Release gives the job back: because the worker stops, or because its lease
	// could not be confirmed for so long that its handler was cancelled. Others
	// have it at the latest when the subscription closes, and the run counts as
	// nothing.
	Release(ctx context.Context) error
}

// SetupError says what can never work as it is configured, and what to do.
type SetupError struct {
	// Provider is the broker's name.
	Provider string
	// Problem says what is wrong, in a sentence without a full stop.
	Problem string
	// Remedy says what to do.
	Remedy string
}

// Error returns all of it in one line.
func (e *SetupError) Error() string {
	return "provider " + e.Provider + ": " + e.Problem + "; " + e.Remedy
}
