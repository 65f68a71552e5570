package providertest

import (
	"fmt"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func claimsChecks() []check {
	all := []check{
		{
			name: "claims/one owner",
			rule: "Claim takes each key for its owner and returns for each, in order, who holds it now; a key of another owner is left as it is.",
			run:  claimsOwner,
		}, {
			name: "claims/many at once",
			rule: "Of many that claim one key at once one gets it, and all are told who.",
			run:  claimsMany,
		}, {
			name: "claims/confirming",
			rule: "A claim is pending or confirmed; a pending refresh never weakens a confirmed claim.",
			run:  claimsConfirm,
		}, {
			name: "claims/end",
			rule: "Claim.For is how long, by the store's clock: a claim ends then and not before.",
			run:  claimsEnd,
		}, {
			name: "claims/refresh",
			rule: "The owner's claim refreshes it, and no refresh makes a claim shorter.",
			run:  claimsRefresh,
		}, {
			name: "claims/release",
			rule: "Release frees the key if the owner has it. It is no error if not.",
			run:  claimsRelease,
		},
	}
	for i := range all {
		all[i].needs = append(all[i].needs, needClaims)
	}
	return all
}

// holds checks who holds a key, without touching it: by a claim of a stranger.
func (t *env) holds(key string, want provider.Holder) {
	t.Helper()
	got := t.claim(t.p, provider.Claim{Key: key, Owner: "a stranger", For: time.Second})[0]
	if got != want {
		t.Errorf("key %q is held by %+v; want %+v", key, got, want)
	}
}

func claimsOwner(t *env) {
	holders := t.claim(t.p,
		provider.Claim{Key: "a", Owner: "job-1", For: time.Hour, Confirmed: true},
		provider.Claim{Key: "b", Owner: "job-2", For: time.Hour},
		provider.Claim{Key: "a", Owner: "job-3", For: time.Hour, Confirmed: true},
	)
	want := []provider.Holder{{Owner: "job-1", Confirmed: true}, {Owner: "job-2"}, {Owner: "job-1", Confirmed: true}}
	for i := range want {
		if holders[i] != want[i] {
			t.Errorf("claim %d of a call: %+v; want %+v", i, holders[i], want[i])
		}
	}
	if got := t.claim(t.open(), provider.Claim{Key: "b", Owner: "job-9", For: time.Hour, Confirmed: true})[0]; got != want[1] {
		t.Errorf("another owner's claim in another process: %+v; want %+v", got, want[1])
	}
	t.holds("a", want[0])
	t.holds("b", want[1])
	if got := t.claim(t.p); len(got) != 0 {
		t.Errorf("Claim of nothing: %+v", got)
	}
}

func claimsMany(t *env) {
	const callers = 32
	p2 := t.open()
	holders := make([]provider.Holder, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			p := t.p
			if i%2 == 1 {
				p = p2
			}
			ctx, cancel := t.ctx()
			defer cancel()
			got, err := p.Claims.Claim(ctx, []provider.Claim{
				{Key: "shared", Owner: fmt.Sprintf("job-%d", i), For: time.Hour},
				{Key: fmt.Sprintf("key-%d", i), Owner: fmt.Sprintf("job-%d", i), For: time.Hour},
			})
			if err != nil || len(got) != 2 {
				t.Errorf("Claim: %v, %v", got, err)
				return
			}
			if want := fmt.Sprintf("job-%d", i); got[1].Owner != want {
				t.Errorf("a key that one alone wants is held by %q; want %q", got[1].Owner, want)
			}
			holders[i] = got[0]
		})
	}
	wg.Wait()
	for i, h := range holders {
		if h != holders[0] {
			t.Errorf("caller %d was told %+v, caller 0 %+v", i, h, holders[0])
		}
	}
}

func claimsConfirm(t *env) {
	pending := provider.Claim{Key: "a", Owner: "job-1", For: time.Hour}
	confirmed := pending
	confirmed.Confirmed = true
	for i, c := range []provider.Claim{pending, confirmed, pending} {
		want := provider.Holder{Owner: "job-1", Confirmed: i > 0}
		if got := t.claim(t.p, c)[0]; got != want {
			t.Errorf("claim %d: %+v; want %+v", i, got, want)
		}
		t.holds("a", want)
	}
}

func claimsEnd(t *env) {
	const d = 2 * time.Second
	start := time.Now()
	t.claim(t.p, provider.Claim{Key: "a", Owner: "job-1", For: d, Confirmed: true})
	t.until("another owner gets the key", func() bool {
		return t.claim(t.p, provider.Claim{Key: "a", Owner: "job-2", For: time.Hour})[0].Owner == "job-2"
	})
	if held := time.Since(start); held < d {
		t.Errorf("a claim for %v held for %v", d, held)
	}
	t.holds("a", provider.Holder{Owner: "job-2"})
}

func claimsRefresh(t *env) {
	start := time.Now()
	t.claim(t.p,
		provider.Claim{Key: "longer", Owner: "job-1", For: time.Second},
		provider.Claim{Key: "shorter", Owner: "job-1", For: 3 * time.Second})
	t.claim(t.p,
		provider.Claim{Key: "longer", Owner: "job-1", For: 3 * time.Second},
		provider.Claim{Key: "shorter", Owner: "job-1", For: time.Second})
	free := make(map[string]bool)
	t.until("another owner gets both keys", func() bool {
		for _, key := range []string{"longer", "shorter"} {
			if free[key] || t.claim(t.p, provider.Claim{Key: key, Owner: "job-2", For: time.Hour})[0].Owner != "job-2" {
				continue
			}
			free[key] = true
			if held := time.Since(start); held < 3*time.Second {
				t.Errorf("key %q was claimed for 3s and for 1s, and held for %v", key, held)
			}
		}
		return len(free) == 2
	})
}

func claimsRelease(t *env) {
	release := func(key, owner string) {
		t.Helper()
		ctx, cancel := t.ctx()
		defer cancel()
		if err := t.p.Claims.Release(ctx, key, owner); err != nil {
			t.Errorf("Release of %q by %q: %v", key, owner, err)
		}
	}
	t.claim(t.p, provider.Claim{Key: "a", Owner: "job-1", For: time.Hour, Confirmed: true})
	release("a", "job-2")
	release("unknown", "job-1")
	t.holds("a", provider.Holder{Owner: "job-1", Confirmed: true})
	release("a", "job-1")
	release("a", "job-1")
	if got := t.claim(t.p, provider.Claim{Key: "a", Owner: "job-2", For: time.Hour})[0].Owner; got != "job-2" {
		t.Errorf("after its release the key is held by %q; want the next who claims it", got)
	}
}
