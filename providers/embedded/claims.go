package embedded

import (
	"context"
	"errors"

	"github.com/backstage-go/backstage/runtime/provider"
)

const (
	sqlClaim = `insert into claim (scope, key, owner, until, confirmed) values (?1, ?2, ?3, ?4, ?5)
on conflict (scope, key) do update set
	until = case when owner = excluded.owner and until > ?6 then max(until, excluded.until) else excluded.until end,
	confirmed = case when owner = excluded.owner and until > ?6 then max(confirmed, excluded.confirmed) else excluded.confirmed end,
	owner = excluded.owner
where until <= ?6 or owner = excluded.owner
returning confirmed`
	sqlHolder = "select owner, confirmed from claim where scope = ? and key = ? and until > ?"
	sqlFree   = "delete from claim where scope = ? and key = ? and owner = ?"
)

// claim takes a key or refreshes it, and returns who holds it then.
func (t *transaction) claim(scope int64, key, owner string, until int64, confirmed bool) provider.Holder {
	holder := provider.Holder{Owner: owner}
	t.wrote = true
	if t.row(sqlClaim, []any{scope, key, owner, until, confirmed, t.now}, &holder.Confirmed) {
		return holder
	}
	t.row(sqlHolder, []any{scope, key, t.now}, &holder.Owner, &holder.Confirmed)
	return holder
}

// claimFor takes the claim of a job that is stored in this transaction. It is not
// taken, and false returned, if another id holds it.
func (t *transaction) claimFor(id string, d provider.Dedupe) (provider.Holder, bool) {
	until := int64(forever)
	if !d.UntilDone {
		until = t.after(d.For)
	}
	holder := t.claim(scopeOwn, d.Key, id, until, true)
	return holder, holder.Owner == id
}

// pendingFor reports whether another id has claimed the job's key without having
// confirmed it.
func (t *transaction) pendingFor(e *entry) bool {
	holder, found := t.otherHolder(e)
	return found && !holder.Confirmed
}

// duplicate reports whether another id holds the job's key.
func (t *transaction) duplicate(e *entry) bool {
	holder, found := t.otherHolder(e)
	return found && holder.Confirmed
}

// otherHolder returns who else holds the job's key.
func (t *transaction) otherHolder(e *entry) (holder provider.Holder, found bool) {
	if e.dedupe.Key == "" {
		return holder, false
	}
	found = t.row(sqlHolder, []any{scopeOwn, e.dedupe.Key, t.now}, &holder.Owner, &holder.Confirmed)
	return holder, found && holder.Owner != e.id
}

// free gives a key back, if the owner has it.
func (t *transaction) free(scope int64, key, owner string) {
	if key != "" {
		t.exec(sqlFree, scope, key, owner)
	}
}

// claims are provider.Claims within a scope.
type claims struct {
	store *store
	scope scopeRef
}

var errClaimFor = errors.New("a claim needs a key, an owner and a time")

// Claim takes keys: provider.Claims.
func (c *claims) Claim(ctx context.Context, wanted []provider.Claim) ([]provider.Holder, error) {
	for i := range wanted {
		if wanted[i].Key == "" || wanted[i].Owner == "" || wanted[i].For <= 0 {
			return nil, errClaimFor
		}
	}
	holders := make([]provider.Holder, len(wanted))
	err := c.store.do(ctx, func(t *transaction) error {
		scope := c.scope.id(t)
		for i, w := range wanted {
			holders[i] = t.claim(scope, w.Key, w.Owner, t.after(w.For), w.Confirmed)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return holders, nil
}

// Release frees a key: provider.Claims.
func (c *claims) Release(ctx context.Context, key, owner string) error {
	return c.store.doFreeing(ctx, func(t *transaction) error {
		t.free(c.scope.id(t), key, owner)
		return nil
	})
}

// Facts describes the claims: provider.Claims.
func (c *claims) Facts() provider.ClaimFacts { return provider.ClaimFacts{Lent: c.scope.lent} }
