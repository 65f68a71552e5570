package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/providers/internal/gate"
	"github.com/backstage-go/backstage/runtime/provider"
)

// shortestLease is what a heartbeat can keep up with on a slow disk.
const shortestLease = 100 * time.Millisecond

// subscription is one worker: provider.Subscription.
type subscription struct {
	store *store
	lease time.Duration
	lanes map[string]int64

	settling gate.Gate // calls that settle or beat
	ended    context.Context
	end      context.CancelFunc

	tookOver int64 // when it last looked for a dead worker's jobs; the writer's
}

// Subscribe makes a worker: provider.Jobs.
func (s *store) Subscribe(ctx context.Context, opts provider.SubscribeOptions) (provider.Subscription, error) {
	if err := checkOptions(opts); err != nil {
		return nil, err
	}
	lanes := make(map[string]int64, len(opts.Lanes))
	err := s.do(ctx, func(t *transaction) error {
		for _, lane := range opts.Lanes {
			lanes[lane.Queue] = t.queue(scopeOwn, lane.Queue)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("subscribing: %w", err)
	}
	sub := &subscription{store: s, lease: opts.Lease, lanes: lanes}
	sub.ended, sub.end = context.WithCancel(s.closing)
	return sub, nil
}

func checkOptions(opts provider.SubscribeOptions) error {
	switch {
	case opts.Worker == "":
		return setupError("a worker has no name", "give SubscribeOptions.Worker a unique one")
	case len(opts.Lanes) == 0:
		return setupError("worker "+opts.Worker+" has no lanes", "name at least one queue")
	case opts.Lease < shortestLease:
		return setupError(fmt.Sprintf("a lease of %s is too short", opts.Lease), fmt.Sprintf("use at least %s", shortestLease))
	}
	for _, lane := range opts.Lanes {
		if lane.Queue == "" {
			return setupError("worker "+opts.Worker+" has a lane without a queue", "name the queue")
		}
	}
	return nil
}

// orphanPatience is how long Receive waits, after its context has ended, for a
// transaction that may have started jobs for it.
const orphanPatience = 700 * time.Millisecond

// Receive hands out jobs: provider.Subscription.
func (s *subscription) Receive(ctx context.Context, lanes []string, most int) ([]provider.Delivery, error) {
	ids := make([]int64, len(lanes))
	for i, name := range lanes {
		q, ok := s.lanes[name]
		if !ok {
			return nil, fmt.Errorf("queue %q is not subscribed", name)
		}
		ids[i] = q
	}
	if most <= 0 || len(lanes) == 0 {
		return nil, errors.New("receiving needs lanes and room for a delivery")
	}
	if !s.store.calls.Enter() {
		return nil, provider.ErrClosed
	}
	defer s.store.calls.Leave()
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ended, cancel)()
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		if within.Err() != nil {
			return nil, s.whyEnded(ctx)
		}
		deliveries, err := s.receive(within, ids, most)
		if len(deliveries) > 0 {
			return deliveries, nil
		}
		if final(err) {
			return nil, err
		}
		if err != nil {
			sleep(within, backoff)
		}
	}
}

// How long Receive rests after an error, growing from the first to the last.
const (
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
)

// whyEnded says why Receive ends without deliveries.
func (s *subscription) whyEnded(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return provider.ErrClosed
}

// receive waits for one transaction that has jobs for us. It may return none
// without an error if all it had were no records.
func (s *subscription) receive(ctx context.Context, lanes []int64, most int) ([]provider.Delivery, error) {
	r := newReception(s, lanes, most)
	if err := s.store.writer.submit(r); err != nil {
		return nil, err
	}
	var early decoded
	select {
	case c := <-r.early:
		early = s.decode(c)
	case <-r.done:
		r.done <- struct{}{} // for await
	case <-ctx.Done():
	}
	if r.await(ctx, orphanPatience) != fateAnswered {
		return nil, ctx.Err()
	}
	if r.err != nil {
		return nil, r.err
	}
	if early.of != &r.got.list[0] { // an attempt that failed
		early = s.decode(r.got)
	}
	for i, d := range early.odd {
		s.bury(ctx, d, early.bytes[i])
	}
	return early.deliveries, nil
}

// decoded are the deliveries of what started, and what of it was no record.
type decoded struct {
	of         *started // the first of them
	deliveries []provider.Delivery
	odd        []*delivery
	bytes      [][]byte
}

// sharing is how many deliveries share a piece of memory. Each of its own would cost
// more, and all of them would be kept by the one that runs longest.
const sharing = 16

// decode makes deliveries of what was started. Mostly it runs while that is
// being committed.
func (s *subscription) decode(c starting) decoded {
	made := decoded{of: &c.list[0], deliveries: make([]provider.Delivery, 0, len(c.list))}
	var room []delivery
	for i := range c.list {
		if len(room) == 0 {
			room = make([]delivery, min(sharing, len(c.list)-i))
		}
		from, d := &c.list[i], &room[0]
		room = room[1:]
		d.sub, d.n, d.run, d.q, d.pos, d.key, d.crashes = s, from.n, c.run, from.q, from.pos, from.key, from.crashes
		job, err := provider.Unmarshal(from.body)
		if err != nil {
			made.odd, made.bytes = append(made.odd, d), append(made.bytes, from.body)
			continue
		}
		job.Counters.Crashes += int32(from.crashes)
		d.job = job
		made.deliveries = append(made.deliveries, d)
	}
	return made
}

// bury dead-letters bytes that are no record. If that fails, their lease ends and
// the next worker tries.
func (s *subscription) bury(ctx context.Context, d *delivery, body []byte) {
	apart, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if d.settle(apart, &settlement{kind: kindForeign, body: body}) == nil {
		s.store.foreign([]string{s.name(d.q)})
	}
}

func (s *subscription) name(q int64) string {
	for name, id := range s.lanes {
		if id == q {
			return name
		}
	}
	return ""
}

// Close ends the worker: provider.Subscription.
func (s *subscription) Close(ctx context.Context) error {
	s.end()
	return s.settling.Close(ctx)
}
