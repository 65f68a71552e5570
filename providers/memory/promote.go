package memory

import (
	"context"
	"slices"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// promoter is one call of Promote that publishes.
type promoter struct {
	delays  *delays
	publish provider.Publish
	pause   time.Duration // the last one, after a publish that did not store all
	rest    time.Time     // until when nothing is tried, because nothing was stored
	sleeper
}

// run publishes what is due until ctx ends. The caller has the lock.
func (p *promoter) run(ctx context.Context) error {
	s, scope := p.delays.session, p.delays.scope
	for ctx.Err() == nil {
		if s.gate.err != nil {
			return s.gate.err
		}
		now := time.Now()
		if now.Before(p.rest) {
			p.sleep(ctx, &s.store.mu, p.rest, s.gate.closing)
			continue
		}
		scope.expire(now)
		batch, jobs := scope.reserve(p, promoteBatch, now.Add(s.lease), now)
		if len(batch) == 0 {
			p.sleep(ctx, &s.store.mu, scope.wake(), s.gate.closing)
			continue
		}
		within, forgotten := context.WithCancel(ctx)
		stored := p.call(within, jobs)
		if s.dropped {
			forgotten()
			return s.gate.err // a dead process forgets nothing
		}
		p.settle(ctx, batch, stored)
		forgotten()
	}
	return nil
}

// call publishes without the lock.
func (p *promoter) call(ctx context.Context, jobs []provider.Job) []provider.Stored {
	lock := &p.delays.session.store.mu
	lock.Unlock()
	defer lock.Lock()
	return p.publish(ctx, jobs)
}

// settle forgets what was published, and leaves the rest for another try.
func (p *promoter) settle(ctx context.Context, batch []*held, stored []provider.Stored) {
	scope, now := p.delays.scope, time.Now()
	var failed []*held
	for i, h := range batch {
		switch {
		case h.state == heldGone: // it was held anew
		case i < len(stored) && published(stored[i].Outcome):
			scope.drop(h, now)
		case h.state == heldReserved && h.owner == p:
			failed = append(failed, h)
		}
	}
	if len(failed) == 0 {
		p.pause = 0
		return
	}
	p.pause = min(max(firstPause, 2*p.pause), longestPause)
	again := now.Add(p.pause)
	if ctx.Err() != nil {
		again = now // this promoter ends, others need not wait
	}
	if len(failed) == len(batch) {
		p.rest = again
	}
	for _, h := range failed {
		h.until = again
		scope.reserved.fix(h)
	}
	scope.rouseFor(again)
}

func published(o provider.Outcome) bool {
	return o == provider.OutcomeStored || o == provider.OutcomeDuplicate
}

// leave ends the call's part in the scope.
func (p *promoter) leave() {
	c := p.delays.scope
	c.publishing--
	c.promoters = slices.DeleteFunc(c.promoters, func(s *sleeper) bool { return s == &p.sleeper })
	c.rouseFor(time.Now()) // what it gave back is for the others
	if c.publishing > 0 || p.delays.facts.Lent {
		return
	}
	for _, q := range p.delays.session.store.queues {
		q.rouseFor(time.Now()) // the store moves its own jobs again, and all workers wait for them
	}
}

// rouseFor wakes promoters that would sleep beyond a time.
func (c *scope) rouseFor(at time.Time) {
	for _, p := range c.promoters {
		p.rouseFor(at)
	}
}
