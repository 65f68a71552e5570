package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/providers/internal/gate"
	"github.com/backstage-go/backstage/runtime/provider"
)

// subscription is this process as a worker: provider.Subscription. It has a
// connection of its own, whose heartbeat follows from its lease, and on it a channel
// for each lane.
type subscription struct {
	store *store
	opts  provider.SubscribeOptions
	link  *link
	lanes map[string]*lane
	order []*lane

	settling gate.Gate // settlements under way
	closing  context.Context
	stop     context.CancelFunc
	work     sync.WaitGroup // the lanes, and what is rescued

	mu      sync.Mutex // guards the ready deliveries of all lanes
	arrived chan struct{}
}

// Subscribe makes this process a worker: provider.Jobs.
func (s *store) Subscribe(ctx context.Context, opts provider.SubscribeOptions) (provider.Subscription, error) {
	var sub *subscription
	err := s.during(func() error {
		beats, err := s.checkOptions(&opts)
		if err != nil {
			return err
		}
		sub, err = s.subscribe(ctx, opts, beats)
		return err
	})
	if err != nil {
		return nil, err
	}
	return sub, nil
}

// checkOptions refuses what can never work.
func (s *store) checkOptions(opts *provider.SubscribeOptions) (heartbeat, error) {
	slots := 0
	for _, l := range opts.Lanes {
		slots += l.Slots
		if l.Slots < 1 || l.Slots > mostPrefetch {
			return 0, setupError(fmt.Sprintf("lane %s has %d slots", l.Queue, l.Slots), fmt.Sprintf("give it 1 to %d", mostPrefetch))
		}
		if err := s.names.check(l.Queue); err != nil {
			return 0, setupError(err.Error(), "choose a shorter one")
		}
	}
	switch {
	case len(opts.Lanes) == 0:
		return 0, setupError("there are no lanes", "name at least one queue")
	case len(opts.Lanes) > opts.MaxUnsettled:
		return 0, setupError(fmt.Sprintf("%d lanes share %d slots, and each needs one of its own", len(opts.Lanes), opts.MaxUnsettled),
			"raise the worker's concurrency, or let other workers serve some of the queues")
	case s.cfg.ConsumerTimeout > 0 && opts.LongestRun > s.cfg.ConsumerTimeout-consumerSlack:
		return 0, setupError(fmt.Sprintf("a task may run for %v, and RabbitMQ takes a worker's jobs back when it has one for longer than its consumer_timeout, %v", opts.LongestRun, s.cfg.ConsumerTimeout),
			"raise consumer_timeout in rabbitmq.conf and say so in Config.ConsumerTimeout, or shorten the task's timeout")
	}
	return heartbeatOf(opts.Lease)
}

const (
	// mostPrefetch is the largest number that AMQP can say for it.
	mostPrefetch = 1<<16 - 1
	// consumerSlack is for what a job waits for beside its handler.
	consumerSlack = time.Minute
)

func (s *store) subscribe(ctx context.Context, opts provider.SubscribeOptions, beats heartbeat) (*subscription, error) {
	if err := s.tryReturn(ctx); err != nil {
		return nil, err
	}
	if s.ownDelays() {
		if err := s.topology.usual(ctx); err != nil {
			return nil, err
		}
	}
	for _, l := range opts.Lanes {
		if err := s.topology.queue(ctx, l.Queue); err != nil {
			return nil, err
		}
	}
	s.reportPolicies(ctx, opts.Lanes)
	dial := s.dialer("worker "+opts.Worker, beats)
	link, err := newLink(ctx, s.news, dial)
	for err != nil && !final(err) && sleep(ctx, firstWait) {
		link, err = newLink(ctx, s.news, dial)
	}
	if err != nil {
		return nil, err
	}
	sub := &subscription{store: s, opts: opts, link: link, lanes: make(map[string]*lane), arrived: make(chan struct{}, 1)}
	sub.closing, sub.stop = context.WithCancel(context.Background())
	for _, l := range opts.Lanes {
		sub.lanes[l.Queue] = &lane{sub: sub, queue: l.Queue, source: s.names.jobs(l.Queue), prefetch: l.Slots, take: sub.arrive}
	}
	rescue := &lane{sub: sub, source: s.names.rescue(), prefetch: rescuePrefetch, take: sub.rescue}
	for _, l := range sub.lanes {
		sub.order = append(sub.order, l)
	}
	sub.order = append(sub.order, rescue)
	s.mu.Lock()
	s.subs[sub] = true
	s.mu.Unlock()
	first := make(chan error, len(sub.order))
	for _, l := range sub.order {
		sub.work.Go(func() { l.run(first) })
	}
	for range sub.order {
		select {
		case e := <-first:
			err = errors.Join(err, e)
		case <-ctx.Done():
			err = errors.Join(err, ctx.Err(), sub.hears())
		}
	}
	if err != nil {
		return nil, errors.Join(err, sub.Close(ctx))
	}
	return sub, nil
}

// Receive returns what starts now: provider.Subscription. What a dead worker left is
// among it, because the broker puts it back into its queue.
func (s *subscription) Receive(ctx context.Context, lanes []string, max int) ([]provider.Delivery, error) {
	for {
		if s.closing.Err() != nil {
			return nil, provider.ErrClosed
		}
		if ds := s.ready(lanes, max); len(ds) > 0 {
			return ds, nil
		}
		select {
		case <-s.arrived:
		case <-s.closing.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ready takes what has arrived.
func (s *subscription) ready(lanes []string, max int) []provider.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ds []provider.Delivery
	for _, queue := range lanes {
		l := s.lanes[queue]
		for l != nil && len(ds) < max && len(l.ready) > 0 {
			d := l.ready[0]
			l.ready[0] = nil
			l.ready = l.ready[1:]
			if !d.source.over() {
				ds = append(ds, d)
			}
		}
	}
	return ds
}

// arrive makes a delivery of what came for a lane.
func (s *subscription) arrive(l *lane, d *delivery, _ *amqp.Delivery) {
	s.mu.Lock()
	l.ready = append(l.ready, d)
	s.mu.Unlock()
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// Extend says which deliveries are still ours: provider.Subscription. The heartbeat
// itself is the connection's.
func (s *subscription) Extend(_ context.Context, deliveries []provider.Delivery) []error {
	errs := make([]error, len(deliveries))
	for i, d := range deliveries {
		d, ok := d.(*delivery)
		switch {
		case !ok || d.source.lane.sub != s:
			errs[i] = provider.ErrLeaseLost
		case s.closing.Err() != nil:
			errs[i] = provider.ErrClosed
		default:
			errs[i] = d.beats()
		}
	}
	return errs
}

// Close ends the subscription: provider.Subscription. What was not received is given
// back. The broker has processed all that was sent to it when it answers the goodbye;
// it gives to others what was not settled.
func (s *subscription) Close(ctx context.Context) error {
	s.stop()
	s.each(func(l *lane) { l.fill(ctx) })
	var cancels []<-chan struct{}
	for _, l := range s.order {
		cancels = append(cancels, l.cancel(ctx))
	}
	s.giveBack(ctx)
	err := s.settling.Close(ctx)
	for _, l := range s.order {
		err = errors.Join(err, l.sent(ctx))
	}
	s.link.close(ctx)
	s.work.Wait()
	for _, done := range cancels {
		<-done
	}
	s.store.mu.Lock()
	delete(s.store.subs, s)
	s.store.mu.Unlock()
	if err != nil {
		return fmt.Errorf("close subscription: %w", err)
	}
	return nil
}

// each does something with all lanes at once.
func (s *subscription) each(do func(l *lane)) {
	var group sync.WaitGroup
	for _, l := range s.order {
		group.Go(func() { do(l) })
	}
	group.Wait()
}

// giveBack releases what has arrived and was not received, as far as there is time: with
// the connection it would come back as well, but as if a worker had died of it.
func (s *subscription) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	s.mu.Lock()
	var left []*delivery
	for _, l := range s.order {
		left = append(left, l.ready...)
		l.ready = nil
	}
	s.mu.Unlock()
	var group sync.WaitGroup
	for _, d := range left {
		group.Go(func() { _ = d.Release(ctx) }) // what is not released comes back with the connection
	}
	group.Wait()
}

// hears returns nil while every lane has a consumer.
func (s *subscription) hears() error {
	conn, _, err := s.link.state()
	switch {
	case conn == nil:
		return fmt.Errorf("worker %s hears nothing: %w", s.opts.Worker, explained(err))
	case conn.doubtful():
		return fmt.Errorf("worker %s hears nothing: %w", s.opts.Worker, conn.silence())
	}
	var errs []error
	for _, l := range s.order {
		if err := l.hears(); err != nil {
			errs = append(errs, fmt.Errorf("worker %s hears nothing of %s: %w", s.opts.Worker, l.source, err))
		}
	}
	return errors.Join(errs...)
}
