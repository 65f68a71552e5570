package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// subscription is one worker's.
type subscription struct {
	session *session
	worker  string
	lease   time.Duration
	lanes   map[string]*queue
	waits   []*queue // while it is asleep
	gate    gate
	sleeper
}

// Subscribe makes the session a worker on the given lanes, whose queues are made
// if need be. It fails with a *provider.SetupError for a worker without a name,
// no lanes, or no lease.
func (p *jobs) Subscribe(ctx context.Context, opts provider.SubscribeOptions) (provider.Subscription, error) {
	s := (*session)(p)
	if err := s.checkSubscribe(&opts); err != nil {
		return nil, err
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	sub := &subscription{
		session: s,
		worker:  opts.Worker,
		lease:   opts.Lease,
		lanes:   make(map[string]*queue, len(opts.Lanes)),
		gate:    newGate(),
		sleeper: newSleeper(),
	}
	for _, lane := range opts.Lanes {
		if sub.lanes[lane.Queue] != nil {
			continue
		}
		q := s.store.queue(lane.Queue)
		sub.lanes[lane.Queue] = q
		q.readers = append(q.readers, sub)
	}
	s.subscriptions[sub] = struct{}{}
	return sub, nil
}

func (s *session) checkSubscribe(opts *provider.SubscribeOptions) error {
	wrong := func(problem, remedy string) error {
		return &provider.SetupError{Provider: s.name, Problem: problem, Remedy: remedy}
	}
	switch {
	case opts.Worker == "":
		return wrong("a subscription has no worker's name", "set SubscribeOptions.Worker")
	case len(opts.Lanes) == 0:
		return wrong("a subscription has no lanes", "set SubscribeOptions.Lanes")
	case opts.Lease <= 0:
		return wrong(fmt.Sprintf("a lease of %v has run out before it starts", opts.Lease), "set SubscribeOptions.Lease to more")
	}
	for _, lane := range opts.Lanes {
		if lane.Queue == "" {
			return wrong("a lane has no queue", "set Lane.Queue")
		}
	}
	return nil
}

// Receive takes first what dead workers left in the lanes, then what is ready, in
// the order of the lanes. It sleeps until there is something, and never beyond the
// time at which a lease ends or a held job is due.
func (s *subscription) Receive(ctx context.Context, lanes []string, max int) ([]provider.Delivery, error) {
	store := s.session.store
	queues, err := s.queues(lanes, max)
	if err != nil {
		return nil, err
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	s.gate.enter()
	defer s.gate.leave()
	return s.receive(ctx, queues, max)
}

// queues finds the lanes' queues.
func (s *subscription) queues(lanes []string, max int) ([]*queue, error) {
	if max < 1 || len(lanes) == 0 {
		return nil, fmt.Errorf("receive: %d deliveries from %d lanes", max, len(lanes))
	}
	queues := make([]*queue, len(lanes))
	for i, lane := range lanes {
		if queues[i] = s.lanes[lane]; queues[i] == nil {
			return nil, fmt.Errorf("receive: lane %q is not subscribed", lane)
		}
	}
	return queues, nil
}

func (s *subscription) receive(ctx context.Context, queues []*queue, max int) (got []provider.Delivery, err error) {
	store := s.session.store
	defer func() {
		for _, q := range queues {
			q.served(s, len(got) > 0)
		}
	}()
	for {
		if s.gate.err != nil {
			return nil, s.gate.err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		now := time.Now()
		store.advance(now)
		var foreign []provider.Event
		got, foreign = s.take(s.takeOver(queues, max, now), queues, max, now)
		switch {
		case len(foreign) > 0:
			s.report(foreign)
		case len(got) == 0:
			s.waits = queues
			s.sleep(ctx, &store.mu, s.alarmTime(queues), s.gate.closing)
		}
		if len(got) > 0 {
			return got, nil
		}
	}
}

// take adds what is ready, in the order of the lanes. What is no record it moves
// to the dead letters.
func (s *subscription) take(got []provider.Delivery, queues []*queue, max int, now time.Time) ([]provider.Delivery, []provider.Event) {
	var foreign []provider.Event
	for _, q := range queues {
		for len(got) < max {
			e := q.take()
			if e == nil {
				break
			}
			if e.raw != nil {
				foreign = append(foreign, s.session.bury(e, now))
				continue
			}
			got = append(got, s.deliver(e, now))
		}
	}
	return got, foreign
}

// report emits events without the lock.
func (s *subscription) report(events []provider.Event) {
	s.session.store.mu.Unlock()
	defer s.session.store.mu.Lock()
	for _, event := range events {
		s.session.provider.Events.Emit(event)
	}
}

// takeOver takes deliveries whose leases have run out, each with one crash more.
func (s *subscription) takeOver(queues []*queue, max int, now time.Time) (got []provider.Delivery) {
	for _, q := range queues {
		for len(got) < max {
			d, ok := q.running.first()
			if !ok || now.Before(d.lease) {
				break
			}
			d.lose()
			crashed := *d.job
			crashed.Counters.Crashes++
			d.entry.job = &crashed
			got = append(got, s.deliver(d.entry, now))
		}
	}
	return got
}

// deliver starts a run.
func (s *subscription) deliver(e *entry, now time.Time) *delivery {
	store := s.session.store
	store.runs++
	e.run = store.runs
	d := &delivery{subscription: s, entry: e, job: e.job, run: e.run, lease: now.Add(s.lease)}
	e.queue.running.push(d)
	e.queue.rouseFor(d.lease) // others have to watch it
	return d
}

// alarmTime returns when there may be something to do although nobody says so.
func (s *subscription) alarmTime(queues []*queue) time.Time {
	var at time.Time
	if own := s.session.store.own; own.publishing == 0 {
		at = own.wake()
	}
	for _, q := range queues {
		if d, ok := q.running.first(); ok {
			at = sooner(at, d.lease)
		}
	}
	return at
}

var errForeign = errors.New("not a delivery of this subscription")

// Extend starts the leases again of those deliveries that are still ours.
func (s *subscription) Extend(ctx context.Context, deliveries []provider.Delivery) []error {
	store := s.session.store
	store.mu.Lock()
	defer store.mu.Unlock()
	now := time.Now()
	errs := make([]error, len(deliveries))
	for i, each := range deliveries {
		if d, ok := each.(*delivery); ok && d.subscription == s {
			errs[i] = d.extend(ctx, now)
		} else {
			errs[i] = errForeign
		}
	}
	return errs
}

// Close ends the subscription. A call of Receive returns; settlements that wait
// for something are waited for until ctx ends.
func (s *subscription) Close(ctx context.Context) error {
	store := s.session.store
	store.mu.Lock()
	defer store.mu.Unlock()
	if err := s.end(ctx); err != nil {
		return fmt.Errorf("provider %s: settlements under way were cut off: %w", s.session.name, err)
	}
	return nil
}

// end closes the subscription. The caller has the lock, which it may give up.
func (s *subscription) end(ctx context.Context) error {
	s.gate.shut(provider.ErrClosed)
	s.unlist()
	return s.gate.drain(ctx, &s.session.store.mu)
}

// unlist takes the subscription off its queues. Its deliveries stay, until their
// leases run out.
func (s *subscription) unlist() {
	for _, q := range s.lanes {
		q.readers = slices.DeleteFunc(q.readers, func(o *subscription) bool { return o == s })
	}
	delete(s.session.subscriptions, s)
}
