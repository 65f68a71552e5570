package memory

import (
	"context"
	"errors"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// claim is a key that has an owner.
type claim struct {
	key, owner string
	confirmed  bool
	ends       time.Time // zero: when it is released
	slot       int       // in claimTable.ending; -1: not there
}

// claimTable is the claims of one scope. The store's lock guards it.
type claimTable struct {
	keys    map[string]*claim
	ending  heap[*claim]
	changed chan struct{} // closed when a claim is confirmed or freed; nil if nobody waits
}

func newClaimTable() claimTable {
	return claimTable{
		keys: make(map[string]*claim),
		ending: heap[*claim]{
			before: func(a, b *claim) bool { return a.ends.Before(b.ends) },
			slot:   func(c *claim) *int { return &c.slot },
		},
	}
}

// get returns the claim on a key, nil if it is free.
func (t *claimTable) get(key string, now time.Time) *claim {
	for {
		c, ok := t.ending.first()
		if !ok || now.Before(c.ends) {
			return t.keys[key]
		}
		t.free(c)
	}
}

// other returns the claim on a key if it has another owner.
func (t *claimTable) other(key, owner string, now time.Time) *claim {
	if c := t.get(key, now); c != nil && c.owner != owner {
		return c
	}
	return nil
}

// take claims a key until a time (zero: until it is released), or refreshes the
// owner's claim, and returns whose it is now.
func (t *claimTable) take(key, owner string, confirmed bool, ends, now time.Time) *claim {
	c := t.get(key, now)
	switch {
	case c == nil:
		c = &claim{key: key, owner: owner, confirmed: confirmed, ends: ends, slot: -1}
		t.keys[key] = c
		if !ends.IsZero() {
			t.ending.push(c)
		}
	case c.owner == owner:
		t.refresh(c, confirmed, ends)
	}
	return c
}

// refresh makes a claim longer and stronger, never shorter or weaker.
func (t *claimTable) refresh(c *claim, confirmed bool, ends time.Time) {
	if confirmed && !c.confirmed {
		c.confirmed = true
		t.tell()
	}
	switch {
	case c.slot < 0: // until it is released already
	case ends.IsZero():
		t.ending.remove(c)
		c.ends, c.slot = ends, -1
	case ends.After(c.ends):
		c.ends = ends
		t.ending.fix(c)
	}
}

// free ends a claim.
func (t *claimTable) free(c *claim) {
	delete(t.keys, c.key)
	if c.slot >= 0 {
		t.ending.remove(c)
	}
	t.tell()
}

// release ends the claim on a key if it is the owner's.
func (t *claimTable) release(key, owner string) {
	if c := t.keys[key]; c != nil && c.owner == owner {
		t.free(c)
	}
}

// tell wakes those who wait for a change.
func (t *claimTable) tell() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// change returns a channel that is closed at the next change but the end of time.
func (t *claimTable) change() <-chan struct{} {
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.changed
}

// claims is the capability: a scope's claims, as one session uses them.
type claims struct {
	session *session
	table   *claimTable
	facts   provider.ClaimFacts
}

var errClaim = errors.New("claim: key, owner or duration is missing")

// Claim takes or refreshes keys, all in one step.
func (c *claims) Claim(ctx context.Context, wanted []provider.Claim) ([]provider.Holder, error) {
	for _, w := range wanted {
		if w.Key == "" || w.Owner == "" || w.For <= 0 {
			return nil, errClaim
		}
	}
	store := c.session.store
	store.mu.Lock()
	defer store.mu.Unlock()
	if err := c.session.usable(ctx); err != nil {
		return nil, err
	}
	now := time.Now()
	holders := make([]provider.Holder, len(wanted))
	for i, w := range wanted {
		held := c.table.take(w.Key, w.Owner, w.Confirmed, now.Add(w.For), now)
		holders[i] = provider.Holder{Owner: held.owner, Confirmed: held.confirmed}
	}
	return holders, nil
}

// Release frees a key if the owner has it.
func (c *claims) Release(ctx context.Context, key, owner string) error {
	store := c.session.store
	store.mu.Lock()
	defer store.mu.Unlock()
	if err := c.session.usable(ctx); err != nil {
		return err
	}
	c.table.release(key, owner)
	return nil
}

// Facts says whose store it is.
func (c *claims) Facts() provider.ClaimFacts { return c.facts }
