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
	for i := range jobs {
		results[i] = provider.Stored{ID: jobs[i].ID, Outcome: provider.OutcomeRefused}
		entries = entries[:len(entries)+1]
		e := &entries[len(entries)-1]
		if err := e.setNew(s, &jobs[i]); err != nil {
			results[i].Err = err
			entries = entries[:len(entries)-1]
			continue
		}
		e.at = i
	}
	for len(entries) > 0 {
		n := portion(entries)
		s.publish(ctx, entries[:n], opts, results)
		entries = entries[n:]
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

// publish stores what fits into one transaction, and puts the answers where they
// belong.
func (s *store) publish(ctx context.Context, entries []entry, opts provider.PublishOptions, results []provider.Stored) {
	p, became, err := s.submitted(ctx, entries, opts)
	for i := range entries {
		at := entries[i].at
		switch became {
		case fateAnswered:
			results[at] = p.places[i].result
		case fateAbandoned:
			results[at] = p.abandoned(i, err)
		default:
			results[at] = provider.Stored{ID: entries[i].id, Outcome: provider.OutcomeUnknown, Err: err}
		}
	}
}

// submitted hands entries to the writer, and waits for what becomes of them.
func (s *store) submitted(ctx context.Context, entries []entry, opts provider.PublishOptions) (*publication, fate, error) {
	p := s.newPublication(entries, opts)
	if err := ctx.Err(); err != nil {
		return p, fateAbandoned, err
	}
	if !s.calls.Enter() {
		return p, fateAbandoned, provider.ErrClosed
	}
	defer s.calls.Leave()
	if err := s.writer.submit(p); err != nil {
		return p, fateAbandoned, err
	}
	became := s.writer.await(ctx, &p.request)
	if became == fateAnswered {
		return p, became, nil
	}
	return p, became, s.writer.whyLate(ctx)
}

// publication is a call of Publish. Jobs that find no room in their queue, or
// their key claimed by a job that is not confirmed, make it wait with what is
// left.
type publication struct {
	request
	entries []entry
	bounded bool // a full queue makes it wait
	claims  bool // it takes its jobs' claims

	places []placed
}

// placed is what became of an entry.
type placed struct {
	result provider.Stored  // OutcomeUnknown: nothing is on record yet
	staged provider.Outcome // what this transaction does
	holder string           // of its key, if it is a duplicate
	wait   error            // why it is not admitted
}

func (s *store) newPublication(entries []entry, opts provider.PublishOptions) *publication {
	return &publication{
		request: s.writer.newRequest(), entries: entries,
		bounded: !opts.Accepted,
		claims:  s.ownClaims() && !opts.Accepted && !opts.Claimed,
		places:  make([]placed, len(entries)),
	}
}

func (p *publication) light() bool { return false }

// stage admits the jobs that can be admitted. Behind one that waits, those of its
// queue or its key wait as well.
func (p *publication) stage(t *transaction) {
	var stuck map[line]error
	for i := range p.entries {
		at, e := &p.places[i], &p.entries[i]
		at.wait = nil
		if at.result.Outcome != provider.OutcomeUnknown {
			continue
		}
		e.q = t.queue(scopeOwn, e.queue)
		wait := stuck[line{e.q, 0}]
		if wait == nil && e.key != 0 {
			wait = stuck[line{e.q, e.key}]
		}
		if wait == nil {
			at.staged, at.holder, wait = p.admit(t, e)
		}
		if wait != nil {
			if stuck == nil {
				stuck = make(map[line]error)
			}
			at.wait = wait
			stuck[line{e.q, waitingKey(e, wait)}] = wait
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

// admit stores one job, or says whose key keeps it out, or why it must wait.
func (p *publication) admit(t *transaction, e *entry) (outcome provider.Outcome, holder string, wait error) {
	if p.bounded && !t.room(e.q) && !(p.claims && t.duplicate(e)) {
		return provider.OutcomeUnknown, "", provider.ErrQueueFull
	}
	if p.claims && e.dedupe.Key != "" {
		holder, ok := t.claimFor(e.id, e.dedupe)
		if !ok && !holder.Confirmed {
			return provider.OutcomeUnknown, "", provider.ErrDedupePending
		}
		if !ok {
			return provider.OutcomeDuplicate, holder.Owner, nil
		}
	}
	t.incoming.add(e)
	return provider.OutcomeStored, "", nil
}

// finish takes over what is on record, and answers or lets it wait.
func (p *publication) finish(w *writer, err error) {
	waiting := false
	for i := range p.places {
		at := &p.places[i]
		if at.result.Outcome != provider.OutcomeUnknown {
			continue
		}
		switch {
		case err != nil:
			at.result = provider.Stored{ID: p.entries[i].id, Outcome: notStored(err), Err: err}
		case at.wait != nil:
			waiting = true
		default:
			at.result = provider.Stored{ID: p.entries[i].id, Outcome: at.staged, Holder: at.holder}
		}
	}
	if !waiting {
		p.answer(nil)
		return
	}
	if p.standBy() {
		w.standby.publications = append(w.standby.publications, p)
	}
}

// notStored is the outcome of a job whose transaction failed.
func notStored(err error) provider.Outcome {
	if doubtful(err) {
		return provider.OutcomeUnknown
	}
	return provider.OutcomeRefused
}

// abandoned returns what is known of an entry when the caller has taken the call
// back.
func (p *publication) abandoned(i int, why error) provider.Stored {
	at := &p.places[i]
	if at.result.Outcome != provider.OutcomeUnknown {
		return at.result
	}
	if at.wait != nil {
		why = fmt.Errorf("%w: %w", at.wait, why)
	}
	return provider.Stored{ID: p.entries[i].id, Outcome: provider.OutcomeRefused, Err: why}
}
