package kafka

import (
	"context"
	"slices"
	"time"
)

// A worker that has more partitions than others gives some up. It starts nothing more
// of one, waits until what runs of it has ended, puts on record that it left it, and
// joins the next generation without it.

// mostEmptying bounds how long a partition is emptied before it is given up with what
// still runs, which is then run again by its next owner.
const mostEmptying = 5 * time.Minute

// balance does what others wait for, and what is to be done now and then. It is called
// with each heartbeat.
func (s *subscription) balance() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, l := range s.lanes {
		l.empty(now, min(mostEmptying, max(s.opts.LongestRun, s.opts.Lease)))
	}
	s.partLocked()
	for _, p := range s.parts {
		if p.tracker != nil && !p.limbo {
			s.sweepLocked(p)
		}
	}
}

// empty chooses partitions to give up, and leaves those of which nothing runs.
func (l *lane) empty(now time.Time, most time.Duration) {
	emptying := 0
	for _, p := range l.parts {
		if p.emptying {
			emptying++
		}
	}
	if emptying == 0 {
		l.since = now
	}
	candidates := slices.Clone(l.parts)
	slices.SortStableFunc(candidates, func(p, q *partition) int { return p.running() - q.running() })
	for _, p := range candidates {
		if !p.emptying && emptying < l.give && !p.limbo {
			p.emptying = true
			emptying++
		}
		if p.emptying && !p.leaving && (p.running() == 0 || now.Sub(l.since) > most) {
			p.leaving = true
			if p.tracker != nil {
				p.tracker.Leave()
				p.sub.commit.kick()
			}
		}
	}
}

func (p *partition) running() int {
	if p.tracker == nil {
		return 0
	}
	return p.tracker.Running()
}

// partLocked parts with partitions of which it is on record that they are left.
func (s *subscription) partLocked() {
	for _, p := range s.parts {
		if p.leaving && (p.tracker == nil || p.tracker.Left()) {
			s.loseLocked(p)
			p.lane.give = max(0, p.lane.give-1)
			s.member.rejoin()
		}
	}
}

// recount is how often a worker looks whether its topics have other partitions.
const recount = 5 * time.Second

// count asks for a new generation when there are other partitions than were assigned,
// until the subscription is closed.
func (s *subscription) count() {
	for sleep(s.closing, recount) {
		for queue, l := range s.lanes {
			ctx, cancel := context.WithTimeout(s.closing, s.store.cfg.Timeout)
			n, err := s.store.topics.ready(ctx, s.store.jobsOf(queue))
			cancel()
			s.mu.Lock()
			if err == nil && l.partitions != n && s.member.now.id != "" {
				s.member.rejoin()
			}
			s.mu.Unlock()
		}
	}
}
