package redisstreams

import (
	"context"
	"fmt"
	"slices"
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
func (s *store) putJobs(ctx context.Context, jobs []provider.Job, make func(*provider.Job) (*entry, error)) []provider.Stored {
	results := newResults(jobs)
	if !s.calls.enter() {
		return refuseAll(results, provider.ErrClosed)
	}
	defer s.calls.leave()
	entries := newEntries(len(jobs))
	for i := range jobs {
		e, err := make(&jobs[i])
		if err != nil {
			results[i].Err = err
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

func newEntries(n int) []*entry { return make([]*entry, 0, n) }

// newResults refuses all jobs, until there is better news.
func newResults(jobs []provider.Job) []provider.Stored {
	results := make([]provider.Stored, len(jobs))
	for i := range jobs {
		results[i] = provider.Stored{ID: jobs[i].ID, Outcome: provider.OutcomeRefused}
	}
	return results
}

func refuseAll(results []provider.Stored, why error) []provider.Stored {
	for i := range results {
		results[i].Err = why
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
	c := newCall(len(entries))
	for _, e := range entries {
		e.call, e.waited, e.waits, e.stored = c, e.waits, nil, provider.Stored{ID: e.id}
	}
	if err := ctx.Err(); err != nil {
		for _, e := range entries {
			e.leave(err)
		}
		return
	}
	parts := s.parts(entries)
	if len(parts) == 1 {
		parts[0].at.puts.add(ctx, entries)
	} else {
		for _, p := range parts {
			p.at.puts.hand(p.entries)
		}
	}
	all := c.wait(ctx, func() {
		for _, p := range parts {
			for _, e := range p.at.puts.withdraw(func(e *entry) bool { return e.call == c }) {
				e.leave(ctx.Err())
			}
		}
	})
	for _, e := range entries {
		if !all && e.stored.Outcome == provider.OutcomeUnknown && e.stored.Err == nil && e.waits == nil {
			e.stored.Err = fmt.Errorf("it may be on its way: %w", ctx.Err())
		}
	}
}

// part is what of a call goes to one slot.
type part struct {
	at      *slot
	entries []*entry
}

func (s *store) parts(entries []*entry) []part {
	if s.keys.tags == TagNamespace {
		return []part{{s.slots.of(s, s.keys.tag("")), entries}}
	}
	var parts []part
	index := make(map[*slot]int)
	for _, e := range entries {
		at := s.slots.of(s, s.keys.within(e.scope, e.queue))
		i, known := index[at]
		if !known {
			i = len(parts)
			index[at], parts = i, append(parts, part{at: at})
		}
		parts[i].entries = append(parts[i].entries, e)
	}
	return parts
}

// flush stores a batch in one step.
func (at *slot) flush(ctx context.Context, batch []*entry) {
	s := at.store
	script, r, order := s.putRequest(batch)
	err := s.register(ctx, r.own()...)
	var problems []any
	if err == nil {
		problems, err = s.link.runSafely(ctx, s.replicas, script, r.keys, r.args...)
	}
	if err == nil && len(problems) == 0 {
		s.news.accepted()
		for _, e := range order {
			e.answer(provider.Stored{Outcome: provider.OutcomeStored}, nil)
		}
		return
	}
	answers := make([]putAnswer, len(order))
	for _, p := range problems {
		list := listOf(p)
		if i := int(numberOf(list[0])) - 1; i < len(answers) {
			answers[i] = putProblem(textOf(list[1]), textOf(list[2]))
		}
	}
	s.putKnown(err, answers)
	for i, e := range order {
		e.answer(answers[i].stored, answers[i].waits)
	}
}

// putRequest is the script that stores a batch and what it is asked for, and the
// entries in the order in which it numbers them.
func (s *store) putRequest(batch []*entry) (*script, *request, []*entry) {
	for _, e := range batch {
		if !e.simple() {
			r := s.putAny(batch)
			return &s.scripts.put, r, batch
		}
	}
	r, order := s.putSimple(batch)
	return &s.scripts.add, r, order
}

func (s *store) putAny(batch []*entry) *request {
	var r request
	for _, e := range batch {
		r.home(s.keys, e.scope, e.queue)
	}
	r.args = make([]any, 0, 1+len(r.names)+9*len(batch))
	r.sayHomes()
	for _, e := range batch {
		r.sayJob(s.keys, e)
	}
	return &r
}

// shelf is where entries go together that are nothing but ready.
type shelf struct {
	queue   string
	bounded bool
}

func (s *store) putSimple(batch []*entry) (*request, []*entry) {
	r := &request{args: make([]any, 0, 2+len(batch))}
	at := batch[0].shelf()
	if !slices.ContainsFunc(batch, func(e *entry) bool { return e.shelf() != at }) {
		r.sayShelf(s.keys, at, batch)
		return r, batch
	}
	order := make([]*entry, 0, len(batch))
	for left := batch; len(left) > 0; {
		at := left[0].shelf()
		first := len(order)
		rest := make([]*entry, 0, len(left))
		for _, e := range left {
			if e.shelf() == at {
				order = append(order, e)
			} else {
				rest = append(rest, e)
			}
		}
		r.sayShelf(s.keys, at, order[first:])
		left = rest
	}
	return r, order
}

// sayShelf adds the entries of a shelf, as add.lua reads them.
func (r *request) sayShelf(k *keyring, at shelf, entries []*entry) {
	h := k.home(scope{}, at.queue)
	r.keys = append(r.keys, h.stream, h.bound, h.held)
	r.names = append(r.names, at.queue)
	kind := "r"
	if at.bounded {
		kind = "b"
	}
	r.say(kind, digits(len(entries)))
	for _, e := range entries {
		r.say(e.body)
	}
}

// putAnswer is what became of an entry of a batch.
type putAnswer struct {
	stored provider.Stored // OutcomeUnknown: nothing was said about it
	waits  error
}

// putProblem reads what the script says of an entry that it did not store.
func putProblem(word, why string) putAnswer {
	refused := provider.Stored{Outcome: provider.OutcomeRefused}
	switch word {
	case "full":
		return putAnswer{refused, provider.ErrQueueFull}
	case "pending":
		return putAnswer{refused, provider.ErrDedupePending}
	case "duplicate":
		return putAnswer{provider.Stored{Outcome: provider.OutcomeDuplicate, Holder: why}, nil}
	}
	refused.Err = explained(saidError(why))
	return putAnswer{refused, nil}
}

// putKnown completes the answers by how the script ended as a whole.
func (s *store) putKnown(err error, answers []putAnswer) {
	rest := provider.Stored{Outcome: provider.OutcomeStored}
	switch r, known := refusalOf(err); {
	case err == nil:
		s.news.accepted()
	case unknown(err):
		rest = provider.Stored{Outcome: provider.OutcomeUnknown, Err: err}
	default:
		rest = provider.Stored{Outcome: provider.OutcomeRefused, Err: err}
		if known && r.blocked {
			s.news.refused(err)
		}
	}
	for i := range answers {
		if a := &answers[i]; a.stored.Outcome == provider.OutcomeUnknown {
			a.stored = rest
		}
	}
}
