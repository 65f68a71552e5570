package providertest

import (
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Harness is one empty storage and the ways into it. The suite makes one for each
// check, and many at once: where a broker is shared, give each names of its own.
type Harness struct {
	// Open opens the storage. What was opened twice acts as two processes do. The
	// suite closes what it opened. Required.
	Open func() (*provider.Provider, error)
	// Lease is the shortest lease that the broker can do. Required.
	Lease time.Duration
	// Lender opens another storage that lends Delays and Claims, for the second
	// round. Nil: there is none.
	Lender func() (*provider.Provider, error)

	// Address is what the function given to Main is called with to open the same
	// storage in another process. Empty: the storage ends with this process, and
	// no process is killed.
	Address string
	// LenderAddress is the same for what Lender opens.
	LenderAddress string

	// Drop ends all that the storage holds for an opened provider, as if its
	// process had been killed: nothing is settled, released or said goodbye to.
	// The provider is called afterwards only to see that it is refused, and to
	// close it. Nil: where leases are on record the suite stops the heartbeat
	// instead, elsewhere only killed processes are measured.
	Drop func(p *provider.Provider)
	// Outage makes the broker unreachable for all that were opened, until restore
	// is called. Nil: there is no broker, or it cannot be stopped.
	Outage func() (restore func(), err error)
	// Crash kills the broker, which forgets what it has not made durable, and
	// returns when it is up again. Nil: there is no broker, or it cannot be
	// killed.
	Crash func() error
	// Bound makes a queue take n unsettled jobs and no more. It is called before
	// the queue is used. Nil: queues have no bounds.
	Bound func(queue string, n int) error
	// Garbage puts bytes that are no record among the jobs of a queue, which is
	// subscribed already. Nil: nobody but the provider can.
	Garbage func(queue string, b []byte) error

	// Patience is how long the suite waits for what must happen. Defaults to a
	// minute.
	Patience time.Duration
	// Simulated says that the storage lives in this process and knows time only
	// from package time, so that each check runs in a testing/synctest bubble,
	// where waiting takes no time.
	Simulated bool
}
