package memory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// deadStore is the dead letters, oldest first. The store's lock guards it.
type deadStore struct {
	letters []*letter
	count   int
	limit   int // 0: none
	refused bool
	last    uint64 // number of the last letter; never used again
}

type letter struct {
	number uint64 // its address
	gone   bool   // replayed or discarded
	provider.DeadLetter
}

// full reports whether there is no room, and whether nobody has met that before.
func (d *deadStore) full() (full, first bool) {
	full = d.limit > 0 && d.count >= d.limit
	first = full && !d.refused
	d.refused = d.refused || full
	return full, first
}

func (d *deadStore) add(l provider.DeadLetter) {
	d.last++
	l.Address = strconv.FormatUint(d.last, 10)
	d.letters = append(d.letters, &letter{number: d.last, DeadLetter: l})
	d.count++
}

// before returns how many of the letters have a lower number.
func (d *deadStore) before(number uint64) int {
	i, _ := slices.BinarySearchFunc(d.letters, number, func(l *letter, n uint64) int {
		switch {
		case l.number < n:
			return -1
		case l.number > n:
			return 1
		}
		return 0
	})
	return i
}

// find returns the letter at an address, nil if there is none.
func (d *deadStore) find(address string) *letter {
	number, err := strconv.ParseUint(address, 10, 64)
	if err != nil {
		return nil
	}
	i := d.before(number)
	if i == len(d.letters) || d.letters[i].gone || d.letters[i].Address != address {
		return nil
	}
	return d.letters[i]
}

// remove takes a letter out. The list is made shorter when half of it is gone, so
// that many removals do not each move all that stay.
func (d *deadStore) remove(l *letter) {
	l.gone = true
	d.refused = false
	d.count--
	if d.count < len(d.letters)/2 {
		d.letters = slices.DeleteFunc(d.letters, func(l *letter) bool { return l.gone })
	}
}

// oldest returns the letter of a queue that has been dead longest, nil if there is
// none.
func (d *deadStore) oldest(queue string) *letter {
	for _, l := range d.letters {
		if !l.gone && l.Queue == queue {
			return l
		}
	}
	return nil
}

// bury moves bytes that are no record to the dead letters. No limit keeps them
// out, because there is nobody to whom they could be given back.
func (s *session) bury(e *entry, now time.Time) provider.Event {
	_, err := provider.Unmarshal(e.raw)
	f := provider.Failure{At: now.Round(0), Class: provider.ClassNoRecord, Message: fmt.Sprint(err)}
	s.store.dead.add(provider.DeadLetter{Queue: e.queue.name, At: now.Round(0), Failure: f, Raw: e.raw})
	e.queue.dead++
	e.queue.leave(e, now)
	return provider.Event{
		Provider: s.name, Kind: provider.ForeignRecord, Queue: e.queue.name, Count: 1,
		Message: "bytes that are no record were moved to the dead letters", Err: err,
	}
}

// deadLetters is the capability to see and move dead letters.
type deadLetters session

// List returns a page of letters, newest first. A page is named by the last
// address before it, so it stays where it is while letters come and go.
func (p *deadLetters) List(ctx context.Context, filter provider.DeadFilter, page string) ([]provider.DeadLetter, string, error) {
	limit := filter.Limit
	if limit <= 0 {
		limit = 100
	}
	s := (*session)(p)
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, "", err
	}
	dead := &s.store.dead
	from := len(dead.letters)
	if page != "" {
		number, err := strconv.ParseUint(page, 10, 64)
		if err != nil {
			return nil, "", fmt.Errorf("list dead letters: no such page: %q", page)
		}
		from = dead.before(number)
	}
	var found []provider.DeadLetter
	for _, l := range slices.Backward(dead.letters[:from]) {
		if l.gone || !filter.Match(&l.DeadLetter) {
			continue
		}
		if len(found) == limit {
			return found, found[limit-1].Address, nil
		}
		found = append(found, l.DeadLetter)
	}
	return found, "", nil
}

// Get returns one letter, or provider.ErrNotFound.
func (p *deadLetters) Get(ctx context.Context, address string) (provider.DeadLetter, error) {
	s := (*session)(p)
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return provider.DeadLetter{}, err
	}
	l := s.store.dead.find(address)
	if l == nil {
		return provider.DeadLetter{}, notFound(address)
	}
	return l.DeadLetter, nil
}

func notFound(address string) error {
	return fmt.Errorf("dead letter %q: %w", address, provider.ErrNotFound)
}

// Replay returns letters to the ends of their queues, each with its claim, in one
// step. It waits, until ctx ends, for a pending claim to become something else.
func (p *deadLetters) Replay(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
	return (*session)(p).each(ctx, addresses, (*session).replay)
}

// Discard removes letters.
func (p *deadLetters) Discard(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
	return (*session)(p).each(ctx, addresses, (*session).discard)
}

// each does something with each of the letters.
func (s *session) each(ctx context.Context, addresses []string, do func(*session, context.Context, string) provider.Stored) ([]provider.Stored, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	s.store.advance(time.Now())
	out := make([]provider.Stored, len(addresses))
	for i, address := range addresses {
		out[i] = do(s, ctx, address)
	}
	return out, nil
}

func (s *session) replay(ctx context.Context, address string) provider.Stored {
	for {
		l := s.store.dead.find(address)
		if l == nil {
			return refused(&provider.Job{}, notFound(address))
		}
		if l.Raw != nil {
			return refused(&provider.Job{}, fmt.Errorf("dead letter %q can only be discarded: %w", address, provider.ErrNoRecord))
		}
		now := time.Now()
		j := l.Job.Replay(now)
		rival := s.rival(&j, now)
		switch {
		case rival == nil:
			s.claim(&j, now)
			s.removeDead(l)
			s.accept(&j, s.store.queue(j.Queue), now)
			return provider.Stored{ID: j.ID, Outcome: provider.OutcomeStored}
		case rival.confirmed:
			return provider.Stored{ID: j.ID, Outcome: provider.OutcomeDuplicate, Holder: rival.owner}
		}
		err := s.awaitClaim(ctx, &s.gate, rival)
		if err == nil && s.dropped {
			err = s.gate.err
		}
		if err != nil {
			return refused(&j, err)
		}
	}
}

// discard frees no claim: the job's was freed when it died, and one that has its
// id now belongs to a job that was stored since.
func (s *session) discard(_ context.Context, address string) provider.Stored {
	l := s.store.dead.find(address)
	if l == nil {
		return refused(&provider.Job{}, notFound(address))
	}
	s.removeDead(l)
	return provider.Stored{ID: l.Job.ID, Outcome: provider.OutcomeStored}
}

func (s *session) removeDead(l *letter) {
	s.store.dead.remove(l)
	s.store.queue(l.Queue).dead--
}
