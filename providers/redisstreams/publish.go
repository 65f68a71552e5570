package redisstreams

import (
	"context"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Publish stores jobs: provider.Jobs.
func (s *store) Publish(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions) []provider.Stored {
	claims := s.ownClaims() && !opts.Accepted && !opts.Claimed
	delays := s.ownDelays()
	return s.putJobs(ctx, jobs, func(j *provider.Job) (*entry, error) {
		e, err := newEntry(j, scope{}, delays)
		if err != nil {
			return nil, err
		}
		e.bounded = !opts.Accepted
		if claims {
			e.dedupe = j.Dedupe
		}
		return e, nil
	})
}

// putJobs makes entries of jobs and puts them where they belong.
func (s *store) putJobs(ctx context.Context, jobs []provider.Job, entryOf func(*provider.Job) (*entry, error)) []provider.Stored {
	results := make([]provider.Stored, len(jobs))
	open := s.calls.Enter()
	if open {
		defer s.calls.Leave()
	}
	entries := make([]*entry, 0, len(jobs))
	for i := range jobs {
		e, err := entryOf(&jobs[i])
		if !open {
			err = provider.ErrClosed
		}
		if err != nil {
			results[i] = provider.Stored{ID: jobs[i].ID, Outcome: provider.OutcomeRefused, Err: err}
			continue
		}
		e.at = i
		entries = append(entries, e)
	}
	s.put(ctx, entries)
	for _, e := range entries {
		results[e.at] = e.stored
	}
	return results
}

// How often a job is tried again that found its queue full or its claim pending.
const (
	firstTry = 20 * time.Millisecond
	lastTry  = 250 * time.Millisecond
)

// put stores entries, each of which says at the end what became of it. Those that
// find no room, or their claim pending, are tried again until ctx ends.
func (s *store) put(ctx context.Context, entries []*entry) {
	for wait := firstTry; len(entries) > 0; wait = min(2*wait, lastTry) {
		s.putOnce(ctx, entries)
		var waiting []*entry
		for _, e := range entries {
			if e.waits != nil {
				waiting = append(waiting, e)
			}
		}
		if entries = waiting; len(entries) > 0 {
			sleep(ctx, wait) // if ctx ends they leave
		}
	}
}

// putOnce sends entries and waits for what becomes of them.
func (s *store) putOnce(ctx context.Context, entries []*entry) {
	c := new(call)
	c.begin(len(entries), &s.signals)
	for _, e := range entries {
		e.call, e.waited, e.waits, e.stored = c, e.waits, nil, provider.Stored{ID: e.id}
	}
	if err := ctx.Err(); err != nil {
		for _, e := range entries {
			e.leave(err)
		}
		return
	}
	if s.keys.tags == TagQueue {
		s.putApart(ctx, c, entries)
		return
	}
	at := s.slots.of(s, s.keys.whole)
	at.puts.add(ctx, entries)
	if !c.wait(ctx, func() { at.leave(c, ctx.Err()) }) {
		unanswered(entries, ctx.Err())
	}
}

// unanswered says of entries that their caller has left what is known of them.
func unanswered(entries []*entry, why error) {
	for _, e := range entries {
		if e.stored.Outcome == provider.OutcomeUnknown && e.stored.Err == nil && e.waits == nil {
			e.stored.Err = fmt.Errorf("it may be on its way: %w", why)
		}
	}
}

// putApart is for a call whose entries may be of several slots.
func (s *store) putApart(ctx context.Context, c *call, entries []*entry) {
	parts := make(map[*slot][]*entry)
	for _, e := range entries {
		at := s.slots.of(s, s.keys.within(e.scope, e.queue))
		parts[at] = append(parts[at], e)
	}
	for at, part := range parts {
		if len(parts) == 1 {
			at.puts.add(ctx, part)
		} else {
			at.puts.hand(part)
		}
	}
	if !c.wait(ctx, func() {
		for at := range parts {
			at.leave(c, ctx.Err())
		}
	}) {
		unanswered(entries, ctx.Err())
	}
}
