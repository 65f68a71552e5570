package redisstreams

import (
	"context"
	"errors"
	"fmt"

	"github.com/backstage-go/backstage/runtime/provider"
)

// claims are provider.Claims within a scope.
type claims struct {
	store *store
	scope scope
	apart bool // in a slot of their own, so that no job is stored in the same step
}

var errClaimFor = errors.New("a claim needs a key, an owner and a time")

// mostClaims is how many keys one step claims.
const mostClaims = 500

// Claim takes keys: provider.Claims.
func (c *claims) Claim(ctx context.Context, wanted []provider.Claim) ([]provider.Holder, error) {
	for i := range wanted {
		if wanted[i].Key == "" || wanted[i].Owner == "" || wanted[i].For <= 0 {
			return nil, errClaimFor
		}
	}
	holders := make([]provider.Holder, 0, len(wanted))
	err := c.store.during(func() error {
		for left := wanted; len(left) > 0; {
			n := min(len(left), mostClaims)
			got, err := c.claim(ctx, left[:n])
			if err != nil {
				return err
			}
			holders, left = append(holders, got...), left[n:]
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return holders, nil
}

func (c *claims) claim(ctx context.Context, wanted []provider.Claim) ([]provider.Holder, error) {
	s := c.store
	var r request
	for _, w := range wanted {
		r.key(s.keys.claim(c.scope, w.Key))
		r.say(w.Owner, milliseconds(w.For), flag(w.Confirmed))
	}
	reply, err := s.link.runSafely(ctx, s.replicas, &s.scripts.claim, r.keys, r.args...)
	if err != nil {
		return nil, err
	}
	if len(reply) != len(wanted) {
		return nil, fmt.Errorf("redis: script claim: %d answers to %d claims", len(reply), len(wanted))
	}
	holders := make([]provider.Holder, len(wanted))
	for i, v := range reply {
		list := listOf(v)
		holders[i] = provider.Holder{Owner: textOf(list[0]), Confirmed: numberOf(list[1]) == 1}
	}
	return holders, nil
}

// Release frees a key: provider.Claims.
func (c *claims) Release(ctx context.Context, key, owner string) error {
	s := c.store
	return s.during(func() error {
		_, err := s.link.run(ctx, &s.scripts.release, []string{s.keys.claim(c.scope, key)}, owner)
		return err
	})
}

// Facts describes the claims: provider.Claims.
func (c *claims) Facts() provider.ClaimFacts {
	return provider.ClaimFacts{Lent: c.scope.lent || c.apart}
}
