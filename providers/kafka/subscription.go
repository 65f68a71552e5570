package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/backstage-go/backstage/providers/internal/gate"
	"github.com/backstage-go/backstage/runtime/provider"
)

// subscription is this process as a worker: provider.Subscription. It is one member of
// the group, with some partitions of its lanes' topics.
type subscription struct {
	store  *store
	opts   provider.SubscribeOptions
	member *member
	commit *committer
	lanes  map[string]*lane
	topics map[string]*lane // by their topics

	settling gate.Gate // settlements under way
	closing  context.Context
	stop     context.CancelFunc
	work     sync.WaitGroup // all goroutines but those of the membership
	arrived  chan struct{}  // has one when there may be something to receive

	mu      sync.Mutex // guards the partitions, and what else says so
	parts   map[spot]*partition
	wants   bool // Receive waits for what may start
	unswept bool // it may not delete what is settled
}

// lane is a queue as this worker serves it.
type lane struct {
	queue, topic string
	parts        []*partition // guarded by the subscription
	turn         int
	give         int       // how many of them others should have
	partitions   int       // of the topic, when they were assigned
	since        time.Time // when the partitions that are given up began to be emptied
}

// Subscribe makes this process a worker: provider.Jobs. It returns when it is a member
// of the group; where one has died a moment ago, that is when its lease has run out.
func (s *store) Subscribe(ctx context.Context, opts provider.SubscribeOptions) (provider.Subscription, error) {
	var sub *subscription
	err := s.during(func() (err error) {
		if err = s.checkOptions(&opts); err != nil {
			return err
		}
		sub, err = s.subscribe(ctx, opts)
		return err
	})
	if err != nil {
		return nil, err
	}
	return sub, nil
}

// checkOptions refuses what can never work.
func (s *store) checkOptions(opts *provider.SubscribeOptions) error {
	if len(opts.Lanes) == 0 {
		return setupError("there are no lanes", "name at least one queue")
	}
	for _, l := range opts.Lanes {
		if err := s.names.check(l.Queue); err != nil {
			return setupError(err.Error(), "choose a shorter one")
		}
	}
	if opts.Lease < time.Millisecond {
		return setupError(fmt.Sprintf("a lease of %v", opts.Lease), "choose one of some seconds")
	}
	return nil
}

func (s *store) subscribe(ctx context.Context, opts provider.SubscribeOptions) (*subscription, error) {
	sub := &subscription{store: s, opts: opts, lanes: make(map[string]*lane), topics: make(map[string]*lane),
		parts: make(map[spot]*partition), arrived: make(chan struct{}, 1)}
	var topics []string
	for _, l := range opts.Lanes {
		if err := s.outlast(ctx, func(ctx context.Context) error {
			if _, err := s.topics.ready(ctx, s.jobsOf(l.Queue)); err != nil {
				return err
			}
			return s.checkRetention(ctx, l.Queue, opts.MaxAge)
		}); err != nil {
			return nil, err
		}
		topic := s.names.jobs(l.Queue)
		if sub.lanes[l.Queue] == nil {
			topics = append(topics, topic)
		}
		sub.lanes[l.Queue] = &lane{queue: l.Queue, topic: topic}
		sub.topics[topic] = sub.lanes[l.Queue]
	}
	sub.closing, sub.stop = context.WithCancel(context.Background())
	sub.member, sub.commit = newMember(sub, topics), newCommitter(sub)
	s.mu.Lock()
	s.subs[sub] = true
	s.mu.Unlock()
	first := make(chan error, 1)
	sub.member.start(first)
	sub.work.Go(sub.commit.run)
	sub.work.Go(sub.count)
	if err := sub.begins(ctx, first); err != nil {
		return nil, errors.Join(err, sub.Close(context.WithoutCancel(ctx)))
	}
	return sub, nil
}

// begins waits until the subscription is in its first generation, and knows what is on
// record of the partitions that it has there.
func (s *subscription) begins(ctx context.Context, first <-chan error) error {
	select {
	case err := <-first:
		if err != nil {
			return err
		}
	case <-s.closing.Done():
		return provider.ErrClosed
	case <-ctx.Done():
		return waited(ctx, s.hears())
	}
	for !s.ready() {
		select {
		case <-s.commit.heard:
		case <-s.closing.Done():
			return provider.ErrClosed
		case <-ctx.Done():
			return waited(ctx, s.hears())
		}
	}
	return nil
}

// ready reports whether every partition was loaded, or cannot be.
func (s *subscription) ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if p.tracker == nil && p.err == nil {
			return false
		}
	}
	return true
}

// claim is what the member brings to the next generation.
func (s *subscription) claim() claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := claim{topics: s.member.topics, owned: make(map[string][]int), generation: s.member.now.generation}
	for at, p := range s.parts {
		if !p.limbo {
			c.owned[at.topic] = append(c.owned[at.topic], at.number)
		}
	}
	return c
}

// adopt takes over what the leader has assigned.
func (s *subscription) adopt(m membership, owned map[string][]int, told granted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.member.now, s.member.err = m, nil
	mine := make(map[spot]bool)
	for topic, numbers := range owned {
		for _, number := range numbers {
			mine[spot{topic, number}] = true
		}
	}
	for at, p := range s.parts {
		if !mine[at] {
			s.loseLocked(p)
		} else if p.limbo {
			p.back = true
			p.wake()
		}
	}
	for at := range mine {
		if l := s.topics[at.topic]; l != nil && s.parts[at] == nil {
			s.addLocked(l, at)
		}
	}
	for topic, l := range s.topics {
		l.give, l.partitions = told.Give[topic], told.Partitions[topic]
		for _, p := range l.parts {
			p.emptying = p.leaving // whoever is still to be given up is chosen anew
		}
	}
	s.member.hearLocked()
	s.commit.kick()
}

// addLocked begins to serve a partition.
func (s *subscription) addLocked(l *lane, at spot) {
	p := newPartition(s, l, at)
	s.parts[at] = p
	l.parts = append(l.parts, p)
	s.work.Go(p.run)
}

// loseLocked ends a partition that others have now, and all runs of it. Nothing of it
// is committed any more.
func (s *subscription) loseLocked(p *partition) {
	if s.dropLocked(p) {
		close(p.lost)
	}
}

// dropLocked ends a partition. It reports whether it was served.
func (s *subscription) dropLocked(p *partition) bool {
	if s.parts[p.at] != p {
		return false
	}
	delete(s.parts, p.at)
	for i, other := range p.lane.parts {
		if other == p {
			p.lane.parts = append(p.lane.parts[:i:i], p.lane.parts[i+1:]...)
			break
		}
	}
	p.stop()
	notify(s.commit.heard)
	return true
}

// Close ends the subscription: provider.Subscription. What still runs is put on record
// as such, so that nobody counts a crash for it, and others have it at once.
func (s *subscription) Close(ctx context.Context) error {
	s.stop()
	err := s.settling.Close(ctx)
	within, cancel := context.WithTimeout(ctx, s.store.cfg.Timeout)
	defer cancel()
	left := s.commit.leave(within)
	if err = errors.Join(err, left); left == nil {
		s.sweepAll(within)
	}
	s.member.close(within)
	s.mu.Lock()
	for _, p := range s.parts {
		s.loseLocked(p)
	}
	s.mu.Unlock()
	s.commit.stop()
	s.work.Wait()
	s.store.mu.Lock()
	delete(s.store.subs, s)
	s.store.mu.Unlock()
	if err != nil {
		return fmt.Errorf("close subscription: %w", err)
	}
	return nil
}

// hears says why the subscription does not receive; nil if it does.
func (s *subscription) hears() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.silentLocked(); err != nil {
		return fmt.Errorf("worker %s hears nothing: %w", s.opts.Worker, err)
	}
	var errs []error
	for at, p := range s.parts {
		if p.err != nil {
			errs = append(errs, fmt.Errorf("worker %s hears nothing of partition %d of %s: %w", s.opts.Worker, at.number, at.topic, p.err))
		}
	}
	return errors.Join(errs...)
}

// errJoining is why a worker hears nothing that is not in the group yet.
var errJoining = errors.New("it joins its group")

// silentLocked says why it is not known that the worker is a member of its group.
func (s *subscription) silentLocked() error {
	m := s.member
	switch {
	case m.now.id == "" && m.err != nil:
		return explained(m.err)
	case m.now.id == "":
		return errJoining
	case time.Since(m.alive) > m.group.session/3+m.every:
		if m.err != nil {
			return explained(m.err)
		}
		return fmt.Errorf("the coordinator of its group has not answered for %v", time.Since(m.alive).Round(time.Millisecond))
	}
	return nil
}

// running returns the offsets of what this worker runs of a queue, for each partition
// that it has, also where that is nothing. The numbers for operators ask it.
func (s *subscription) running(queue string) map[int][]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	offsets := make(map[int][]int64)
	if l := s.lanes[queue]; l != nil {
		for _, p := range l.parts {
			if p.tracker != nil {
				offsets[p.at.number] = p.tracker.Runs()
			}
		}
	}
	return offsets
}
