package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// session is a store as one process has opened it.
type session struct {
	store    *Store
	provider *provider.Provider
	name     string
	lease    time.Duration // of a promotion

	gate          gate
	dropped       bool
	subscriptions map[*subscription]struct{}
}

func newSession(config Config) *session {
	s := &session{
		store:         config.Store,
		name:          config.Name,
		lease:         config.PromotionLease,
		gate:          newGate(),
		subscriptions: make(map[*subscription]struct{}),
	}
	s.provider = &provider.Provider{
		Name:   config.Name,
		Jobs:   (*jobs)(s),
		Delays: &delays{session: s, scope: s.store.own, facts: delayFacts(false)},
		Claims: &claims{session: s, table: &s.store.own.claims},
		Stats:  (*stats)(s),
		Dead:   (*deadLetters)(s),
		Events: &provider.Events{},
		Lend:   s.lend,
		Health: s.health,
		Close:  s.close,
	}
	return s
}

// ownDelays says whether the provider's Delays are its own, perhaps with something
// around them, and not lent by another.
func (s *session) ownDelays() bool {
	d := s.provider.Delays
	return d != nil && !d.Facts().Lent
}

// ownClaims says the same of its Claims.
func (s *session) ownClaims() bool {
	c := s.provider.Claims
	return c != nil && !c.Facts().Lent
}

// usable returns why a call has to fail before it has done anything. The caller
// has the lock.
func (s *session) usable(ctx context.Context) error {
	if s.gate.err != nil {
		return s.gate.err
	}
	return ctx.Err()
}

func (s *session) lend(scope string) (provider.Delays, provider.Claims) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	c := s.store.borrowed(scope)
	return &delays{session: s, scope: c, facts: delayFacts(true)},
		&claims{session: s, table: &c.claims, facts: provider.ClaimFacts{Lent: true}}
}

func (s *session) health(ctx context.Context) error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return s.usable(ctx)
}

// close ends the session: calls that wait for work end at once, all others when
// they have what they wait for, or with ctx.
func (s *session) close(ctx context.Context) error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.gate.shut(provider.ErrClosed)
	delete(s.store.sessions, s.provider)
	var cut error
	for sub := range s.subscriptions {
		if err := sub.end(ctx); err != nil {
			cut = err
		}
	}
	if err := s.gate.drain(ctx, &s.store.mu); err != nil {
		cut = err
	}
	if cut != nil {
		return fmt.Errorf("provider %s: calls under way were cut off: %w", s.name, cut)
	}
	return nil
}

// drop ends the session as a kill would. The caller has the lock.
func (s *session) drop() {
	s.dropped = true
	why := fmt.Errorf("provider %s: dropped: %w", s.name, provider.ErrClosed)
	s.gate.shut(why)
	s.gate.cutOff()
	delete(s.store.sessions, s.provider)
	for sub := range s.subscriptions {
		sub.gate.shut(why)
		sub.gate.cutOff()
		sub.unlist()
	}
}
