package provider

import "time"

// JobFacts say what a broker does strongly and what weakly. The suite measures
// each; a provider that claims more than it does fails.
type JobFacts struct {
	// Death is who finds out that a worker is dead.
	Death Death
	// Confirmed says that a nil settlement is on the broker's record. False: its
	// end was only sent, and a crash of the broker may bring back jobs settled in
	// its last moment. What it carried (next jobs, the copy of a retry or of a
	// dead letter) is on record in either case.
	Confirmed bool
	// RefusesLate says that a settlement after the lease was lost is refused.
	RefusesLate bool
	// AtomicHandoff says that Ack stores the next jobs and ends the job in one
	// step. It holds while Delays and Claims are the provider's own, or the next
	// jobs need neither.
	AtomicHandoff bool
	// ExactCrashes says that Counters.Crashes is exact. False: an upper bound,
	// which also counts deliveries that never started.
	ExactCrashes bool
	// Retries says which jobs Delivery.Retry can take while Delays is nil or
	// lent. (With Delays of its own a provider retries every job.)
	Retries Retries
	// Ordered says that jobs with one ordering key run one at a time, in order.
	// False: a job with one is refused.
	Ordered bool
	// FixedSlots says that each lane has slots of its own, fixed when it is
	// subscribed, which settling occupies too. The provider keeps each lane to its
	// Lane.Slots: the runtime asks for all lanes in every call. Strict priority is
	// then impossible.
	FixedSlots bool
	// Durable says that stored jobs survive the process that stored them.
	Durable bool
}

// Death is who finds out that a worker is dead.
type Death int

const (
	// LeaseOnRecord: each delivery has a lease in the store, which a heartbeat
	// renews and others may take over when it has run out.
	LeaseOnRecord Death = iota + 1
	// Session: deliveries belong to a connection or a membership and return when
	// it ends.
	Session
)

// Retries says which jobs a provider can retry without Delays.
type Retries int

const (
	// RetriesNone: no job.
	RetriesNone Retries = iota
	// RetriesOrdered: jobs with an ordering key, which wait in their place.
	RetriesOrdered
	// RetriesAll: every job.
	RetriesAll
)

// DelayFacts say how a store keeps work for later.
type DelayFacts struct {
	// Lent says that the store belongs to another provider: the runtime holds
	// jobs before it publishes or acknowledges, and promotes with a publish of
	// its own.
	Lent bool
	// Finest is the grain of due times. A job is never early by more than that.
	Finest time.Duration
	// Longest is the longest delay; a job with a longer one is refused. Zero: no
	// bound.
	Longest time.Duration
	// Addressable says that a held job can be found by its id: holding the same
	// one again replaces it (see Job.SameStamp), and Cancel works. False: both
	// copies run, and Cancel returns false.
	Addressable bool
	// Countable says that Held can tell how many jobs are held.
	Countable bool
}

// ClaimFacts say how a store keeps claims.
type ClaimFacts struct {
	// Lent says that the store belongs to another provider: the runtime claims
	// before it publishes and confirms after. False: Publish and Ack claim in
	// their own step.
	Lent bool
}
