package embedded

import (
	"context"

	"github.com/backstage-go/backstage/runtime/provider"
)

// scopeRef is whose jobs and claims: the file's own, or a borrower's by name.
type scopeRef struct {
	lent bool
	name string
}

// id returns the scope's number, which it makes if need be.
func (r scopeRef) id(t *transaction) int64 {
	if !r.lent {
		return scopeOwn
	}
	var id int64
	if t.row("select scope from scope where name = ?", []any{r.name}, &id) {
		return id
	}
	t.exec("insert into scope (name) values (?)", r.name)
	t.row("select scope from scope where name = ?", []any{r.name}, &id)
	return id
}

// find returns the scope's number by reading alone; false if nobody has used it.
func (r scopeRef) find(ctx context.Context, s *store) (int64, bool, error) {
	if !r.lent {
		return scopeOwn, true, nil
	}
	var id int64
	found, err := s.readRow(ctx, "select scope from scope where name = ?", []any{r.name}, &id)
	return id, found, err
}

// lend gives delays and claims to a borrower: provider.Provider.Lend.
func (s *store) lend(name string) (provider.Delays, provider.Claims) {
	ref := scopeRef{lent: true, name: name}
	return &delays{store: s, scope: ref}, &claims{store: s, scope: ref}
}
