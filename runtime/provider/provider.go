package provider

import "context"

// Provider is one broker, opened. Constructors of the provider packages return
// it; the runtime takes it. A nil capability is one that the broker does not
// have. Delays and Claims may be replaced, before a client or a worker is made,
// by what another provider lends:
//
//	k.Delays, k.Claims = r.Lend("kafka-eu")
//
// They are lent if their Facts say so at that time, and the provider's own if not:
// what is put around one, to measure it, passes its Facts on.
type Provider struct {
	// Name is the broker's, in messages and tables: "embedded", "kafka".
	Name string
	// Jobs stores jobs and hands them out. Never nil.
	Jobs Jobs
	// Delays keeps work for later.
	Delays Delays
	// Claims keeps keys for a bounded time.
	Claims Claims
	// Stats tells operators how the queues stand.
	Stats Stats
	// Dead is the store of dead-lettered jobs.
	Dead DeadLetters
	// Events is where the provider reports what happens to it. Never nil.
	Events *Events
	// Lend gives Delays and Claims of this store to another provider, within a
	// scope that names where the borrower's jobs belong: held jobs and claims of
	// one scope are never seen in another, nor by the lender itself. Closing the
	// borrower does not close the lender. Nil if the store cannot.
	Lend func(scope string) (Delays, Claims)
	// Health returns nil while jobs can be published and every subscription
	// receives, and an error that says why not otherwise. Never nil.
	Health func(ctx context.Context) error
	// Close ends the provider: it waits for calls under way until ctx ends, and
	// calls after it return ErrClosed. Closing twice is fine. What the user
	// passed in (a client, a connection) stays open. Never nil.
	Close func(ctx context.Context) error
}
