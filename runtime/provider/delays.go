package provider

import "context"

// Publish stores jobs that are due, as Jobs.Publish does. The context that it is given
// ends soon after its answer: once the store has forgotten what was stored, or has given
// up to do so.
type Publish func(ctx context.Context, jobs []Job) []Stored

// Delays keeps work for later.
type Delays interface {
	// Hold keeps the jobs until due: Job.Delay from now, by the store's clock. A
	// copy that is held already (Job.SameStamp) is replaced where Facts says
	// Addressable; elsewhere both run.
	Hold(ctx context.Context, jobs []Job) []Stored
	// Promote moves due jobs until ctx ends, and then returns nil: through
	// publish, or, if that is nil, into the store's own queues in one step. A due
	// job is reserved for one promoter at a time under the store's lease, within
	// which publish must answer, and forgotten only after publish said stored or
	// duplicate, and only if it was not held anew meanwhile. Several promoters
	// may run at once, here and elsewhere; of the jobs of a queue that share an
	// ordering key one is reserved at a time, in the order in which they were due,
	// so that none passes another that publish did not store. It lives through
	// outages and returns an error only when that is final.
	Promote(ctx context.Context, publish Publish) error
	// Cancel removes the held jobs with this id that have not started, frees
	// their claims where those are in the same store, and returns what it removed.
	// A job that was only parked has not started (see Job.Started); one that waits for
	// a retry has, and one that is being promoted at this moment is no longer held.
	Cancel(ctx context.Context, id string) ([]Job, error)
	// Held returns how many jobs of a queue wait for their time; unknown where
	// Facts says that they cannot be counted.
	Held(ctx context.Context, queue string) (Measure[int64], error)
	// Facts says how well the store does it. It is constant.
	Facts() DelayFacts
}
