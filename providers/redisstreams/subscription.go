package redisstreams

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/backstage-go/backstage/providers/internal/gate"
	"github.com/backstage-go/backstage/runtime/provider"
)

// shortestLease is what a heartbeat can keep up with.
const shortestLease = 100 * time.Millisecond

// subscription is one worker: provider.Subscription. Its consumer is a name that
// nobody else ever has, with the lease in it, so that whoever looks for dead workers'
// jobs knows when each may be taken.
type subscription struct {
	store    *store
	worker   string
	lease    time.Duration
	consumer string
	lanes    map[string]*lane
	desks    []*desk
	token    string        // of the groups that it makes
	ring     chan struct{} // something has come to one of the desks

	receiving gate.Gate
	settling  gate.Gate // calls that settle or beat
	watchers  sync.WaitGroup
	ended     context.Context
	end       context.CancelFunc

	mu      sync.Mutex
	trouble error // why it hears nothing
}

// Subscribe makes a worker: provider.Jobs.
func (s *store) Subscribe(ctx context.Context, opts provider.SubscribeOptions) (provider.Subscription, error) {
	if err := checkOptions(opts); err != nil {
		return nil, err
	}
	if !s.calls.Enter() {
		return nil, provider.ErrClosed
	}
	defer s.calls.Leave()
	sub := &subscription{
		store:    s,
		worker:   opts.Worker,
		lease:    opts.Lease,
		consumer: opts.Worker + "@" + strconv.FormatInt(opts.Lease.Milliseconds(), 10),
		lanes:    make(map[string]*lane, len(opts.Lanes)),
		token:    rand.Text() + ".",
		ring:     make(chan struct{}, 1),
	}
	sub.ended, sub.end = context.WithCancel(s.closing)
	for _, l := range opts.Lanes {
		sub.addLane(l.Queue)
	}
	for rest := firstRest; ; rest = min(2*rest, lastRest) {
		err := sub.open(ctx)
		if err == nil {
			break
		}
		if !passes(err) || !sleep(ctx, rest) {
			sub.end()
			return nil, fmt.Errorf("subscribing: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs[sub] = true
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

// addLane gives a lane to the desk of its slot.
func (s *subscription) addLane(queue string) {
	if s.lanes[queue] != nil {
		return
	}
	tag := s.store.keys.tag(queue)
	var at *desk
	for _, d := range s.desks {
		if d.tag == tag {
			at = d
		}
	}
	if at == nil {
		at = newDesk(s, tag)
		s.desks = append(s.desks, at)
	}
	l := newLane(at, queue)
	s.lanes[queue] = l
	at.lanes = append(at.lanes, l)
}

func (s *subscription) queues() []string { return slices.Sorted(maps.Keys(s.lanes)) }

// listAgain puts the lanes on the list of queues, which may have vanished.
func (s *subscription) listAgain(ctx context.Context) {
	s.store.registry.forget()
	_ = s.store.register(ctx, s.queues()...) // or whoever publishes next does
}

// open makes the groups of all lanes.
func (s *subscription) open(ctx context.Context) error {
	if err := s.store.register(ctx, s.queues()...); err != nil {
		return err
	}
	for _, d := range s.desks {
		if err := d.open(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Receive hands out jobs: provider.Subscription.
func (s *subscription) Receive(ctx context.Context, names []string, most int) ([]provider.Delivery, error) {
	parts, err := s.chosen(names)
	if err != nil {
		return nil, err
	}
	if most <= 0 || len(parts) == 0 {
		return nil, errors.New("receiving needs lanes and room for a delivery")
	}
	if !s.receiving.Enter() {
		return nil, provider.ErrClosed
	}
	defer s.receiving.Leave()
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ended, cancel)()
	for rest := firstRest; within.Err() == nil; {
		deliveries, err := s.receive(within, parts, min(most, mostPieces))
		s.heard(within, err)
		switch {
		case len(deliveries) > 0 && s.ended.Err() != nil:
			s.giveBack(ctx, deliveries)
			return nil, provider.ErrClosed
		case len(deliveries) > 0:
			return started(deliveries), nil
		case err != nil:
			sleep(within, rest)
			rest = min(2*rest, lastRest)
		default:
			rest = firstRest
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, provider.ErrClosed
}

// givingBack is how long what came too late may take to be given back.
const givingBack = time.Second

// giveBack releases what was taken while the subscription ended, and is not started.
// Close waits for it.
func (s *subscription) giveBack(ctx context.Context, list []*delivery) {
	apart, cancel := context.WithTimeout(context.WithoutCancel(ctx), givingBack)
	defer cancel()
	var all sync.WaitGroup
	for _, d := range list {
		all.Go(func() { _ = d.Release(apart) }) // or its lease ends
	}
	all.Wait()
}

// started are deliveries for the caller.
func started(list []*delivery) []provider.Delivery {
	deliveries := make([]provider.Delivery, len(list))
	for i, d := range list {
		deliveries[i] = d
	}
	return deliveries
}

// part is a desk and the lanes that are wanted of it, in their order.
type part struct {
	desk  *desk
	lanes []*lane
}

func (s *subscription) chosen(names []string) ([]part, error) {
	var parts []part
	for _, name := range names {
		l := s.lanes[name]
		if l == nil {
			return nil, fmt.Errorf("queue %q is not subscribed", name)
		}
		if n := len(parts); n > 0 && parts[n-1].desk == l.desk {
			parts[n-1].lanes = append(parts[n-1].lanes, l)
			continue
		}
		parts = append(parts, part{l.desk, []*lane{l}})
	}
	return parts, nil
}

// receive makes one attempt. It waits if there is nothing.
func (s *subscription) receive(ctx context.Context, parts []part, most int) ([]*delivery, error) {
	if len(parts) == 1 {
		return parts[0].desk.receive(ctx, parts[0].lanes, most)
	}
	var got []*delivery
	var errs []error
	read := func(p part, w wishes) {
		if len(got) < most {
			some, err := p.desk.read(ctx, p.lanes, most-len(got), w)
			got, errs = append(got, some...), append(errs, err)
		}
	}
	for _, p := range parts { // what others have left comes before all lanes
		if p.desk.takesOver() {
			read(p, wishes{takeOver: true})
		}
	}
	for _, p := range parts {
		if !p.desk.watching.Load() {
			read(p, wishes{take: true, places: true})
		}
	}
	if err := errors.Join(errs...); err != nil || len(got) > 0 {
		return got, err
	}
	next := takeOverEvery
	for _, p := range parts {
		p.desk.watch(p.lanes)
		next = min(next, time.Until(p.desk.takeOverAt))
	}
	timer := time.NewTimer(max(next, time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-s.ring:
	case <-timer.C:
	}
	return nil, nil
}

// heard notes whether the last attempt to receive went well.
func (s *subscription) heard(ctx context.Context, err error) {
	if err != nil && cutShort(ctx) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = err
}

// hears returns why it does not.
func (s *subscription) hears() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble == nil {
		return nil
	}
	return fmt.Errorf("worker %s receives nothing: %w", s.worker, s.trouble)
}

// Close ends the worker: provider.Subscription.
func (s *subscription) Close(ctx context.Context) error {
	s.end()
	if err := errors.Join(s.receiving.Close(ctx), s.settling.Close(ctx)); err != nil {
		return err
	}
	s.watchers.Wait()
	s.store.mu.Lock()
	_, open := s.store.subs[s]
	delete(s.store.subs, s)
	s.store.mu.Unlock()
	if !open {
		return nil
	}
	var errs []error
	for _, d := range s.desks {
		errs = append(errs, d.close(ctx))
	}
	return errors.Join(errs...)
}
