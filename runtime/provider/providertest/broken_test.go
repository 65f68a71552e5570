package providertest

import (
	"context"

	"github.com/backstage-go/backstage/runtime/provider"
)

// brokenDelays has calls in place of some of another's.
type brokenDelays struct {
	provider.Delays
	hold    func(ctx context.Context, jobs []provider.Job) []provider.Stored
	promote func(ctx context.Context, publish provider.Publish) error
	cancel  func(ctx context.Context, id string) ([]provider.Job, error)
	held    func(ctx context.Context, queue string) (provider.Measure[int64], error)
	facts   func(provider.DelayFacts) provider.DelayFacts
}

func (d *brokenDelays) Hold(ctx context.Context, jobs []provider.Job) []provider.Stored {
	if d.hold != nil {
		return d.hold(ctx, jobs)
	}
	return d.Delays.Hold(ctx, jobs)
}

func (d *brokenDelays) Promote(ctx context.Context, publish provider.Publish) error {
	if d.promote != nil {
		return d.promote(ctx, publish)
	}
	return d.Delays.Promote(ctx, publish)
}

func (d *brokenDelays) Cancel(ctx context.Context, id string) ([]provider.Job, error) {
	if d.cancel != nil {
		return d.cancel(ctx, id)
	}
	return d.Delays.Cancel(ctx, id)
}

func (d *brokenDelays) Held(ctx context.Context, queue string) (provider.Measure[int64], error) {
	if d.held != nil {
		return d.held(ctx, queue)
	}
	return d.Delays.Held(ctx, queue)
}

func (d *brokenDelays) Facts() provider.DelayFacts {
	if d.facts != nil {
		return d.facts(d.Delays.Facts())
	}
	return d.Delays.Facts()
}

// brokenClaims has calls in place of some of another's.
type brokenClaims struct {
	provider.Claims
	claim   func(ctx context.Context, claims []provider.Claim) ([]provider.Holder, error)
	release func(ctx context.Context, key, owner string) error
	facts   func(provider.ClaimFacts) provider.ClaimFacts
}

func (c *brokenClaims) Claim(ctx context.Context, claims []provider.Claim) ([]provider.Holder, error) {
	if c.claim != nil {
		return c.claim(ctx, claims)
	}
	return c.Claims.Claim(ctx, claims)
}

func (c *brokenClaims) Release(ctx context.Context, key, owner string) error {
	if c.release != nil {
		return c.release(ctx, key, owner)
	}
	return c.Claims.Release(ctx, key, owner)
}

func (c *brokenClaims) Facts() provider.ClaimFacts {
	if c.facts != nil {
		return c.facts(c.Claims.Facts())
	}
	return c.Claims.Facts()
}

// brokenDead has calls in place of some of another's.
type brokenDead struct {
	provider.DeadLetters
	list    func(ctx context.Context, f provider.DeadFilter, page string) ([]provider.DeadLetter, string, error)
	get     func(ctx context.Context, address string) (provider.DeadLetter, error)
	replay  func(ctx context.Context, addresses ...string) ([]provider.Stored, error)
	discard func(ctx context.Context, addresses ...string) ([]provider.Stored, error)
}

func (d *brokenDead) List(ctx context.Context, f provider.DeadFilter, page string) ([]provider.DeadLetter, string, error) {
	if d.list != nil {
		return d.list(ctx, f, page)
	}
	return d.DeadLetters.List(ctx, f, page)
}

func (d *brokenDead) Get(ctx context.Context, address string) (provider.DeadLetter, error) {
	if d.get != nil {
		return d.get(ctx, address)
	}
	return d.DeadLetters.Get(ctx, address)
}

func (d *brokenDead) Replay(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
	if d.replay != nil {
		return d.replay(ctx, addresses...)
	}
	return d.DeadLetters.Replay(ctx, addresses...)
}

func (d *brokenDead) Discard(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
	if d.discard != nil {
		return d.discard(ctx, addresses...)
	}
	return d.DeadLetters.Discard(ctx, addresses...)
}

// brokenStats has calls in place of some of another's.
type brokenStats struct {
	provider.Stats
	queues func(ctx context.Context) ([]string, error)
	queue  func(ctx context.Context, queue string) (provider.QueueStats, error)
}

func (s *brokenStats) Queues(ctx context.Context) ([]string, error) {
	if s.queues != nil {
		return s.queues(ctx)
	}
	return s.Stats.Queues(ctx)
}

func (s *brokenStats) Queue(ctx context.Context, queue string) (provider.QueueStats, error) {
	if s.queue != nil {
		return s.queue(ctx, queue)
	}
	return s.Stats.Queue(ctx, queue)
}
