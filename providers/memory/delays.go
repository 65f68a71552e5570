package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// delays is the capability to keep work for later: a scope's held jobs, as one
// session uses them.
type delays struct {
	session *session
	scope   *scope
	facts   provider.DelayFacts
}

func delayFacts(lent bool) provider.DelayFacts {
	return provider.DelayFacts{Lent: lent, Finest: time.Nanosecond, Addressable: true, Countable: true}
}

// Facts says how well the store keeps work.
func (d *delays) Facts() provider.DelayFacts { return d.facts }

// Hold keeps jobs until they are due; none of it can be unknown.
func (d *delays) Hold(ctx context.Context, list []provider.Job) []provider.Stored {
	store := d.session.store
	store.mu.Lock()
	defer store.mu.Unlock()
	now := time.Now()
	out := make([]provider.Stored, len(list))
	for i := range list {
		out[i] = d.hold(ctx, &list[i], now)
	}
	return out
}

func (d *delays) hold(ctx context.Context, j *provider.Job, now time.Time) provider.Stored {
	err := check(j)
	if err == nil {
		err = d.session.usable(ctx)
	}
	if err != nil {
		return refused(j, err)
	}
	var q *queue
	if !d.facts.Lent {
		q = d.session.store.queue(j.Queue)
		q.unsettled++
	}
	d.scope.hold(newEntry(j, q), now.Add(max(0, j.Delay)), now)
	return provider.Stored{ID: j.ID, Outcome: provider.OutcomeStored}
}

// Cancel removes held jobs that have never run and are not being promoted, and
// frees their claims in the same scope.
func (d *delays) Cancel(ctx context.Context, id string) (cancelled []provider.Job, err error) {
	store := d.session.store
	store.mu.Lock()
	defer store.mu.Unlock()
	if err := d.session.usable(ctx); err != nil {
		return nil, err
	}
	now := time.Now()
	for _, h := range slices.Clone(d.scope.ids[id]) {
		if h.state == heldReserved || h.entry.job.Started() {
			continue
		}
		cancelled = append(cancelled, *h.entry.job)
		d.scope.drop(h, now)
		if key := h.entry.job.Dedupe.Key; key != "" {
			d.scope.claims.release(key, id)
		}
	}
	return cancelled, nil
}

// Held returns how many jobs of a queue wait in this scope, due ones that nobody
// has promoted included.
func (d *delays) Held(ctx context.Context, queue string) (provider.Measure[int64], error) {
	store := d.session.store
	store.mu.Lock()
	defer store.mu.Unlock()
	if err := d.session.usable(ctx); err != nil {
		return provider.Measure[int64]{}, err
	}
	return provider.Measured(d.scope.counts[queue]), nil
}

const (
	promoteBatch = 100 // jobs for one publish
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// Promote moves due jobs until ctx ends. Without a publish there is nothing to do
// but to wait, because the store moves its own by itself. A job that publish did
// not store is tried again after a pause, which grows up to 2s.
func (d *delays) Promote(ctx context.Context, publish provider.Publish) error {
	s := d.session
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.gate.err != nil {
		return s.gate.err
	}
	if publish == nil && d.facts.Lent {
		return fmt.Errorf("provider %s: promote: lent delays need a publish", s.name)
	}
	s.gate.enter()
	defer s.gate.leave()
	if publish == nil {
		return s.untilEnd(ctx)
	}
	p := &promoter{delays: d, publish: publish, sleeper: newSleeper()}
	d.scope.promoters = append(d.scope.promoters, &p.sleeper)
	d.scope.publishing++
	defer p.leave()
	return p.run(ctx)
}

// untilEnd gives up the lock until ctx ends or the session is closed.
func (s *session) untilEnd(ctx context.Context) error {
	s.store.mu.Unlock()
	defer s.store.mu.Lock()
	select {
	case <-ctx.Done():
		return nil
	case <-s.gate.closing:
		return provider.ErrClosed
	}
}
