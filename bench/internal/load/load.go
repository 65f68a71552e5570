// Package load has what measurements of a queue on a server share: a queue as they
// see it, producers, the payload, and the account of which jobs ran.
package load

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	benchv1 "github.com/backstage-go/backstage/bench/gen/bench/v1"
	"github.com/backstage-go/backstage/bench/internal/work"
)

// Side is one of the queues that are measured beside each other, empty at first. All
// take the same payload, and unmarshal it in the handler, which then says which job
// ran.
type Side interface {
	// Enqueue stores job n and returns when the queue has answered for it. Many
	// producers call it at once.
	Enqueue(ctx context.Context, n int) error
	// Batch stores a number of jobs, the first of which is n, in one call, and returns
	// when the queue has answered for all of them.
	Batch(ctx context.Context, n, count int) error
	// Start runs a worker with a number of slots until stop is called, and returns when
	// it receives. It tells ran of each job. What stop returns has been settled.
	Start(slots int, ran func(n int)) (stop func() error, err error)
	// Close closes what the side has opened.
	Close() error
}

// Payloads are what jobs carry, but for their numbers.
type Payloads []*benchv1.PlainRequest

// NewPayloads returns some.
func NewPayloads() Payloads { return work.Requests(1000) }

// Of returns the payload of job n.
func (p Payloads) Of(n int) *benchv1.PlainRequest {
	like := p[n%len(p)]
	return &benchv1.PlainRequest{Number: int64(n), OrderId: like.OrderId, Customer: like.Customer, Cents: like.Cents}
}

// Marshalled returns its bytes.
func (p Payloads) Marshalled(n int) ([]byte, error) { return proto.Marshal(p.Of(n)) }

// Number reads a payload as a handler does, and returns the job's number.
func Number(body []byte) (int, error) {
	in := new(benchv1.PlainRequest)
	if err := proto.Unmarshal(body, in); err != nil {
		return 0, err
	}
	return int(in.GetNumber()), nil
}

// Produce stores the jobs below count by a number of producers, each of which waits
// for its job before it goes on to the next. It returns the first error.
func Produce(ctx context.Context, s Side, producers, count int) error {
	var (
		group  sync.WaitGroup
		next   atomic.Int64
		failed atomic.Pointer[error]
	)
	for range producers {
		group.Go(func() {
			for n := int(next.Add(1)) - 1; n < count && failed.Load() == nil; n = int(next.Add(1)) - 1 {
				if err := s.Enqueue(ctx, n); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
