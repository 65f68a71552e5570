package providertest

import (
	"github.com/backstage-go/backstage/runtime/provider"
)

// letters lists one page of dead letters.
func (t *env) letters(p *provider.Provider, f provider.DeadFilter) []provider.DeadLetter {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	letters, _, err := p.Dead.List(ctx, f, "")
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	return letters
}

func (t *env) replay(p *provider.Provider, addresses ...string) []provider.Stored {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	stored, err := p.Dead.Replay(ctx, addresses...)
	if err != nil {
		t.Fatalf("Replay: %v", err)
	}
	if len(stored) != len(addresses) {
		t.Fatalf("Replay of %d dead letters gave %d answers", len(addresses), len(stored))
	}
	return stored
}
