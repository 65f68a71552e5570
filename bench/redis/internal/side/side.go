// Package side has what is measured beside each other: Backstage, asynq, and a
// loop written by hand. All take the same payload over the same client library on
// the same server, and unmarshal it in the handler, which then says which job ran.
package side

import (
	"context"

	"google.golang.org/protobuf/proto"

	benchv1 "github.com/backstage-go/backstage/bench/gen/bench/v1"
	"github.com/backstage-go/backstage/bench/internal/work"
)

// Names of the sides.
const (
	Backstage = "backstage"
	Asynq     = "asynq"
	Bare      = "bare"
)

// Side is a queue with a producer and a worker, on an empty server.
type Side interface {
	// Enqueue stores job n and returns when the queue has answered for it. Many
	// producers call it at once.
	Enqueue(ctx context.Context, n int) error
	// Fill stores the jobs below count, as fast as the queue's interface allows.
	Fill(ctx context.Context, count int) error
	// Start runs a worker with a number of slots until stop is called. It tells ran
	// of each job.
	Start(slots int, ran func(n int)) (stop func() error, err error)
	// Left returns how many jobs the queue still has: waiting, running or not yet
	// settled.
	Left(ctx context.Context) (int64, error)
	// Close closes what the side has opened.
	Close() error
}

// payloads are what jobs carry, but for their numbers.
type payloads []*benchv1.PlainRequest

func newPayloads() payloads { return work.Requests(1000) }

// of returns the payload of job n.
func (p payloads) of(n int) *benchv1.PlainRequest {
	like := p[n%len(p)]
	return &benchv1.PlainRequest{Number: int64(n), OrderId: like.OrderId, Customer: like.Customer, Cents: like.Cents}
}

func (p payloads) marshalled(n int) ([]byte, error) { return proto.Marshal(p.of(n)) }

// number reads a payload as a handler does.
func number(body []byte) (int, error) {
	in := new(benchv1.PlainRequest)
	if err := proto.Unmarshal(body, in); err != nil {
		return 0, err
	}
	return int(in.GetNumber()), nil
}
