package backstage

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/proto"
)

// DefaultQueue is the queue of tasks that name none.
const DefaultQueue = "default"

// Task is what is known of a task where its jobs are made. Generated code builds
// it; users have no need to.
type Task[M proto.Message] struct {
	// Name is the task's name on the wire.
	Name string
	// Queue is where its jobs wait. Defaults to DefaultQueue.
	Queue string
	// Delay is how long a job waits before its first start. Defaults to none.
	Delay time.Duration
	// Expires is the time from first due within which a job must start. Defaults
	// to whenever.
	Expires time.Duration
	// Dedupe returns the dedupe key of a payload. Defaults to no dedupe.
	Dedupe func(M) (string, error)
	// DedupeFor is how long the key holds from enqueue, unless the job is
	// dead-lettered before. Ignored with DedupeUntilDone.
	DedupeFor time.Duration
	// DedupeUntilDone holds the key until the job's outcome.
	DedupeUntilDone bool
	// OrderingKey returns the ordering key of a payload. Defaults to no order.
	OrderingKey func(M) (string, error)
}

// Needs returns what the task asks of a provider.
func (t Task[M]) Needs() Needs {
	return Needs{Task: t.Name, Queue: cmp.Or(t.Queue, DefaultQueue),
		Delay: t.Delay > 0, Dedupe: t.Dedupe != nil, Order: t.OrderingKey != nil}
}

// Needs is what a task asks of a provider beyond storing jobs.
type Needs struct {
	// Task is the task's name on the wire.
	Task string
	// Queue is where its jobs wait. Somebody must serve it. Defaults to
	// DefaultQueue.
	Queue string
	// Delay: its jobs wait before their first start.
	Delay bool
	// Dedupe: its jobs have a dedupe key.
	Dedupe bool
	// Order: its jobs have an ordering key.
	Order bool
}
