package embedded

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

const (
	sqlLetter     = "select q, raw, body from dead where n = ?"
	sqlDropLetter = "delete from dead where n = ?"
	// mostLetters is how many letters one transaction replays or discards.
	mostLetters = 500
)

// Replay returns dead letters to their queues: provider.DeadLetters.
func (l *letters) Replay(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
	return l.each(ctx, addresses, (*transaction).replay)
}

// Discard removes dead letters: provider.DeadLetters.
func (l *letters) Discard(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
	return l.each(ctx, addresses, (*transaction).discard)
}

// each does something to letters, so many a transaction. After an error those of
// the failed transaction and all later ones are as the error says.
func (l *letters) each(ctx context.Context, addresses []string, do func(*transaction, string) provider.Stored) ([]provider.Stored, error) {
	results := make([]provider.Stored, 0, len(addresses))
	for len(addresses) > 0 {
		n := min(len(addresses), mostLetters)
		var part []provider.Stored
		outcome, err := l.store.storing(ctx, func(t *transaction) error {
			part = make([]provider.Stored, n)
			for i, address := range addresses[:n] {
				part[i] = do(t, address)
			}
			return nil
		})
		if err != nil {
			for i := range addresses {
				if i >= n {
					outcome = provider.OutcomeRefused
				}
				results = append(results, provider.Stored{Outcome: outcome, Err: err})
			}
			return results, err
		}
		results, addresses = append(results, part...), addresses[n:]
	}
	return results, nil
}

// letter is a dead letter as it is stored.
type letter struct {
	n, q int64
	raw  bool
	body []byte
}

// letter finds a dead letter.
func (t *transaction) letter(address string) (letter, bool) {
	n, err := strconv.ParseInt(address, 10, 64)
	if err != nil {
		return letter{}, false
	}
	l := letter{n: n}
	return l, t.row(sqlLetter, []any{n}, &l.q, &l.raw, &l.body)
}

// replay returns one letter to its queue, with its claim if it had one.
func (t *transaction) replay(address string) provider.Stored {
	l, found := t.letter(address)
	if !found {
		return provider.Stored{Outcome: provider.OutcomeRefused, Err: notFound(address)}
	}
	job, err := provider.Unmarshal(l.body)
	if l.raw || err != nil {
		err = fmt.Errorf("dead letter %q can only be discarded: %w", address, provider.ErrNoRecord)
		return provider.Stored{Outcome: provider.OutcomeRefused, Err: err}
	}
	again := job.Replay(time.Unix(0, t.now))
	e := new(entry)
	if err := e.set(&again); err != nil {
		return provider.Stored{ID: job.ID, Outcome: provider.OutcomeRefused, Err: err}
	}
	if t.w.store.ownClaims() && job.Dedupe.Key != "" {
		if holder, ok := t.claimFor(job.ID, job.Dedupe); !ok {
			return claimedBy(job.ID, holder)
		}
	}
	e.q = l.q
	t.incoming.add(e)
	t.dropLetter(l)
	return provider.Stored{ID: job.ID, Outcome: provider.OutcomeStored}
}

// claimedBy is the answer for a letter whose key another job holds.
func claimedBy(id string, holder provider.Holder) provider.Stored {
	if !holder.Confirmed {
		return provider.Stored{ID: id, Outcome: provider.OutcomeRefused, Err: provider.ErrDedupePending}
	}
	return provider.Stored{ID: id, Outcome: provider.OutcomeDuplicate, Holder: holder.Owner}
}

// discard removes one letter. Its claim was freed when the job died.
func (t *transaction) discard(address string) provider.Stored {
	l, found := t.letter(address)
	if !found {
		return provider.Stored{Outcome: provider.OutcomeRefused, Err: notFound(address)}
	}
	t.dropLetter(l)
	stored := provider.Stored{Outcome: provider.OutcomeStored}
	if job, err := provider.Unmarshal(l.body); err == nil && !l.raw {
		stored.ID = job.ID
	}
	return stored
}

func notFound(address string) error {
	return fmt.Errorf("dead letter %q: %w", address, provider.ErrNotFound)
}

func (t *transaction) dropLetter(l letter) {
	t.exec(sqlDropLetter, l.n)
	t.tally(l.q).dead--
}
