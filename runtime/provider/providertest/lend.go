package providertest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func lendChecks() []check {
	all := []check{
		{
			name: "lend/scopes of delays",
			rule: "Held jobs of one scope are never seen in another, nor by the lender itself: not promoted, not counted, not cancelled.",
			run:  lendDelays,
		}, {
			name: "lend/scopes of claims",
			rule: "Claims of one scope are never seen in another, nor by the lender itself.",
			run:  lendClaims,
		}, {
			name: "lend/is lent",
			rule: "DelayFacts.Lent and ClaimFacts.Lent say that the store belongs to another provider.",
			run:  lendFacts,
		}, {
			name: "lend/scope is the place",
			rule: "A scope names where the borrower's jobs belong: who borrows the same one sees the same jobs.",
			run:  lendSame,
		}, {
			name: "lend/outlives the borrower",
			rule: "Closing the borrower does not close the lender.",
			run:  lendClose,
		},
	}
	for i := range all {
		all[i].needs = []need{needLend}
	}
	return all
}

// needLend is for checks of the provider as a lender. They are the same in both
// rounds, and run in the first.
func needLend(t *env) string {
	switch {
	case t.p.Lend == nil:
		return "absent: the provider does not lend"
	case t.round == lent:
		return "measured in the round without lent capabilities"
	}
	return ""
}

// borrower is one who promotes a scope and notes what it gets.
type borrower struct {
	mu  sync.Mutex
	got map[string]int
}

func (t *env) borrow(p *provider.Provider, scope string) (*borrower, provider.Delays, provider.Claims) {
	t.Helper()
	d, c := p.Lend(scope)
	if d == nil || c == nil {
		t.Fatalf("Lend(%q): %v, %v; want both", scope, d, c)
	}
	return &borrower{got: make(map[string]int)}, d, c
}

func (b *borrower) publish(due []provider.Job) []provider.Stored {
	b.mu.Lock()
	defer b.mu.Unlock()
	stored := make([]provider.Stored, len(due))
	for i, j := range due {
		b.got[j.ID]++
		stored[i] = provider.Stored{ID: j.ID, Outcome: provider.OutcomeStored}
	}
	return stored
}

func (b *borrower) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.got)
}

func lendDelays(t *env) {
	const jobs = 1000
	scopes := []string{"kafka-eu", "kafka-us"}
	borrowers := make([]*borrower, len(scopes))
	own := t.some(3, work, delayed(2*time.Second))
	if t.p.Delays != nil {
		t.hold(t.p, own...)
		t.promote(t.p)
	}
	for i, scope := range scopes {
		b, d, _ := t.borrow(t.p, scope)
		borrowers[i] = b
		t.holdIn(d, jobs, scope)
	}
	for i, scope := range scopes {
		_, d, _ := t.borrow(t.open(), scope)
		if n, known := t.held(d, work).Get(); known && n > jobs {
			t.Errorf("scope %s holds %d jobs of %d: it counts another's", scope, n, jobs)
		}
		if d.Facts().Addressable && t.cancelIn(d, fmt.Sprintf("%s/%d", scopes[1-i], 0)) {
			t.Errorf("scope %s cancelled a job of scope %s", scope, scopes[1-i])
		}
		t.promoteIn(d, borrowers[i])
	}
	t.until("all held jobs are promoted", func() bool {
		return borrowers[0].count() >= jobs && borrowers[1].count() >= jobs
	})
	for i, b := range borrowers {
		b.mu.Lock()
		for id := range b.got {
			if id[:len(scopes[i])] != scopes[i] {
				t.Errorf("scope %s promoted %s", scopes[i], id)
			}
		}
		b.mu.Unlock()
	}
	t.lenderHas(own)
}

// holdIn holds jobs in a scope whose ids name it.
func (t *env) holdIn(d provider.Delays, n int, scope string) {
	t.Helper()
	jobs := make([]provider.Job, n)
	for i := range jobs {
		jobs[i] = t.job(work, withID(fmt.Sprintf("%s/%d", scope, i)), delayed(2*time.Second))
	}
	ctx, cancel := t.ctx()
	defer cancel()
	stored := d.Hold(ctx, jobs)
	t.answers("Hold", jobs, stored)
	t.stored("Hold", stored)
}

func (t *env) cancelIn(d provider.Delays, id string) bool {
	t.Helper()
	return t.cancel(&provider.Provider{Delays: d}, id)
}

func (t *env) promoteIn(d provider.Delays, b *borrower) {
	t.promoteWith(&provider.Provider{Delays: d}, func(_ context.Context, due []provider.Job) []provider.Stored { return b.publish(due) })
}

// lenderHas checks that the lender's queue got its own held jobs and no other.
func (t *env) lenderHas(own []provider.Job) {
	t.Helper()
	w := t.subscribe(t.p, 10, work)
	if t.p.Delays == nil {
		w.nothing("what was lent is for the borrowers")
		return
	}
	got := byID(w.receive(len(own)))
	for _, j := range own {
		if got[j.ID] == nil {
			t.Errorf("%s, which the lender held for itself, did not reach its queue", j.ID)
		}
	}
	w.nothing("what was lent is for the borrowers")
}

func lendClaims(t *env) {
	_, _, eu := t.borrow(t.p, "kafka-eu")
	_, _, us := t.borrow(t.p, "kafka-us")
	stores := []provider.Claims{eu, us}
	if t.p.Claims != nil {
		stores = append(stores, t.p.Claims)
	}
	for i, c := range stores {
		owner := fmt.Sprintf("job-%d", i)
		if got := t.claimOn(c, provider.Claim{Key: "order/1", Owner: owner, For: time.Hour, Confirmed: true})[0]; got.Owner != owner {
			t.Errorf("a key that another scope claimed is held by %q; want it free", got.Owner)
		}
	}
	ctx, cancel := t.ctx()
	defer cancel()
	if err := us.Release(ctx, "order/1", "job-0"); err != nil {
		t.Errorf("Release: %v", err)
	}
	if got := t.claimOn(eu, provider.Claim{Key: "order/1", Owner: "a stranger", For: time.Hour})[0]; got.Owner != "job-0" {
		t.Errorf("a key is held by %q after its release in another scope", got.Owner)
	}
}

func lendFacts(t *env) {
	_, d, c := t.borrow(t.p, "kafka-eu")
	if !d.Facts().Lent || !c.Facts().Lent {
		t.Errorf("lent capabilities say Lent: %v and %v", d.Facts().Lent, c.Facts().Lent)
	}
	if t.p.Delays != nil && t.p.Delays.Facts().Lent || t.p.Claims != nil && t.p.Claims.Facts().Lent {
		t.Errorf("the provider's own capabilities say that they are lent")
	}
}

func lendSame(t *env) {
	_, d, c := t.borrow(t.p, "kafka-eu")
	t.holdIn(d, 3, "kafka-eu")
	t.claimOn(c, provider.Claim{Key: "order/1", Owner: "job-1", For: time.Hour})
	b, d, c := t.borrow(t.open(), "kafka-eu")
	t.promoteIn(d, b)
	t.until("another process promotes the jobs of its scope", func() bool { return b.count() == 3 })
	if got := t.claimOn(c, provider.Claim{Key: "order/1", Owner: "job-2", For: time.Hour})[0]; got.Owner != "job-1" {
		t.Errorf("a key of the scope is held by %q in another process; want job-1", got.Owner)
	}
}

func lendClose(t *env) {
	if t.h.Lender == nil {
		t.Skipf("not measured here: there is no borrower")
	}
	// The roles change: what the harness has as a lender borrows here.
	borrower := t.openLender()
	borrower.Delays, borrower.Claims = t.p.Lend("borrower")
	d, c := borrower.Delays, borrower.Claims
	ctx, cancel := t.ctx()
	defer cancel()
	if err := borrower.Close(ctx); err != nil {
		t.Errorf("Close of the borrower: %v", err)
	}
	t.holdIn(d, 1, "borrower")
	t.claimOn(c, provider.Claim{Key: "order/1", Owner: "job-1", For: time.Hour})
	t.publish(t.p, t.job(work))
	t.ack(t.subscribe(t.p, 1, work).one())
}
