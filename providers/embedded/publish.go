package embedded

import (
	"context"
	"fmt"

	"github.com/backstage-go/backstage/runtime/provider"
)

// A transaction takes at most so many jobs of one call, and so many bytes, so that
// a large call does not make the small ones wait.
const (
	mostJobs  = 1000
	mostBytes = 4 << 20
)

// Publish stores jobs: provider.Jobs.
func (s *store) Publish(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions) []provider.Stored {
	results := make([]provider.Stored, len(jobs))
	entries := make([]entry, 0, len(jobs))
	places := make([]int, 0, len(jobs))
	for i := range jobs {
		results[i] = provider.Stored{ID: jobs[i].ID, Outcome: provider.OutcomeRefused}
		e, err := newEntry(jobs[i])
		if err == nil && e.job.Delay > 0 && !s.ownDelays() {
			err = errNoDelays
		}
		if err != nil {
			results[i].Err = err
			continue
		}
		entries, places = append(entries, e), append(places, i)
	}
	stored := make([]provider.Stored, 0, len(entries))
	for len(entries) > 0 {
		n := portion(entries)
		stored = append(stored, s.publish(ctx, entries[:n], opts)...)
		entries = entries[n:]
	}
	for i, at := range places {
		results[at] = stored[i]
	}
	return results
}

// portion returns how many entries the next transaction should take.
func portion(entries []entry) int {
	bytes := 0
	for i := range entries {
		bytes += len(entries[i].body)
		if i+1 == mostJobs || bytes >= mostBytes {
			return i + 1
		}
	}
	return len(entries)
}

// publish stores what fits into one transaction.
func (s *store) publish(ctx context.Context, entries []entry, opts provider.PublishOptions) []provider.Stored {
	if err := ctx.Err(); err != nil {
		return allRefused(entries, err)
	}
	if !s.calls.enter() {
		return allRefused(entries, provider.ErrClosed)
	}
	defer s.calls.leave()
	p := newPublication(entries, opts, s.ownClaims())
	if err := s.writer.submit(p); err != nil {
		return allRefused(entries, err)
	}
	switch p.await(ctx, patience) {
	case fateAnswered:
		return p.results
	case fateAbandoned:
		return p.abandoned(s.writer.whyLate(ctx))
	default:
		return p.unknown(ctx.Err())
	}
}

func allRefused(entries []entry, err error) []provider.Stored {
	results := make([]provider.Stored, len(entries))
	for i := range entries {
		results[i] = provider.Stored{ID: entries[i].job.ID, Outcome: provider.OutcomeRefused, Err: err}
	}
	return results
}

// publication is a call of Publish. Jobs that find no room in their queue, or
// their key claimed by a job that is not confirmed, make it wait with what is
// left.
type publication struct {
	request
	entries []entry
	bounded bool // a full queue makes it wait
	claims  bool // it takes its jobs' claims

	results []provider.Stored // on record; OutcomeUnknown: not yet
	staged  []provider.Stored // what this transaction did
	waits   []error           // why a job was not admitted
}

func newPublication(entries []entry, opts provider.PublishOptions, ownClaims bool) *publication {
	return &publication{
		request: newRequest(), entries: entries,
		bounded: !opts.Accepted,
		claims:  ownClaims && !opts.Accepted && !opts.Claimed,
		results: make([]provider.Stored, len(entries)),
		staged:  make([]provider.Stored, len(entries)),
		waits:   make([]error, len(entries)),
	}
}

func (p *publication) light() bool { return false }

// stage admits the jobs that can be admitted. Behind one that waits, those of its
// queue or its key wait as well.
func (p *publication) stage(t *transaction) {
	var stuck map[chained]error
	for i := range p.entries {
		p.staged[i], p.waits[i] = provider.Stored{}, nil
		if p.results[i].Outcome != provider.OutcomeUnknown {
			continue
		}
		e := &p.entries[i]
		e.q = t.queue(scopeOwn, e.job.Queue)
		wait := stuck[chained{e.q, 0}]
		if wait == nil && e.key != 0 {
			wait = stuck[chained{e.q, e.key}]
		}
		if wait == nil {
			p.staged[i], wait = p.admit(t, e)
		}
		if wait != nil {
			if stuck == nil {
				stuck = make(map[chained]error)
			}
			p.waits[i] = wait
			stuck[chained{e.q, waitingKey(e, wait)}] = wait
		}
	}
}

// waitingKey says who has to wait behind a job: its queue if that is full, and
// those of its key if its claim is pending.
func waitingKey(e *entry, wait error) int64 {
	if wait == provider.ErrQueueFull {
		return 0
	}
	if e.key == 0 {
		return -1 // nobody
	}
	return e.key
}

// admit stores one job, or says why it must wait.
func (p *publication) admit(t *transaction, e *entry) (provider.Stored, error) {
	if p.bounded && !t.room(e.q) {
		return provider.Stored{}, provider.ErrQueueFull
	}
	if p.claims && e.job.Dedupe.Key != "" {
		holder, ok := t.claimFor(&e.job)
		if !ok && !holder.Confirmed {
			return provider.Stored{}, provider.ErrDedupePending
		}
		if !ok {
			return provider.Stored{ID: e.job.ID, Outcome: provider.OutcomeDuplicate, Holder: holder.Owner}, nil
		}
	}
	t.incoming.add(e)
	return provider.Stored{ID: e.job.ID, Outcome: provider.OutcomeStored}, nil
}

// finish takes over what is on record, and answers or parks.
func (p *publication) finish(w *writer, err error) {
	waiting := false
	for i := range p.entries {
		if p.results[i].Outcome != provider.OutcomeUnknown {
			continue
		}
		switch {
		case err != nil:
			p.results[i] = provider.Stored{ID: p.entries[i].job.ID, Outcome: notStored(err), Err: err}
		case p.waits[i] != nil:
			waiting = true
		default:
			p.results[i] = p.staged[i]
		}
	}
	if !waiting {
		p.answer(nil)
		return
	}
	if p.park() {
		w.parked.publications = append(w.parked.publications, p)
	}
}

// notStored is the outcome of a job whose transaction failed.
func notStored(err error) provider.Outcome {
	if doubtful(err) {
		return provider.OutcomeUnknown
	}
	return provider.OutcomeRefused
}

// abandoned returns what is known when the caller has taken the call back.
func (p *publication) abandoned(why error) []provider.Stored {
	for i := range p.results {
		if p.results[i].Outcome != provider.OutcomeUnknown {
			continue
		}
		err := why
		if p.waits[i] != nil {
			err = fmt.Errorf("%w: %w", p.waits[i], why)
		}
		p.results[i] = provider.Stored{ID: p.entries[i].job.ID, Outcome: provider.OutcomeRefused, Err: err}
	}
	return p.results
}

// unknown returns that nothing is known, because a transaction is under way.
func (p *publication) unknown(why error) []provider.Stored {
	results := make([]provider.Stored, len(p.entries))
	for i := range p.entries {
		results[i] = provider.Stored{ID: p.entries[i].job.ID, Outcome: provider.OutcomeUnknown, Err: why}
	}
	return results
}
