package providertest

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Run runs the suite: every check on a new harness, first with the provider as it
// is, then with lent Delays and Claims. newHarness is called with the test of the
// check that it is for, and once more to learn what there is to check.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	run(t, checks(), newHarness)
}

func run(t *testing.T, checks []check, newHarness func(t *testing.T) Harness) {
	t.Helper()
	probe := newHarness(t)
	rounds := []round{own}
	if probe.Lender != nil {
		rounds = append(rounds, lent)
	}
	results := newResults()
	for _, r := range rounds {
		t.Run(r.String(), func(t *testing.T) {
			for _, c := range checks {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					if probe.Simulated {
						synctest.Test(t, func(t *testing.T) { results.run(t, c, r, newHarness(t)) })
						return
					}
					results.run(t, c, r, newHarness(t))
				})
			}
		})
	}
	p, err := probe.Open()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Logf("facts of provider %s:\n%s", p.Name, results.table(p))
	if err := p.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("close: %v", err)
	}
}

// round is with whose Delays and Claims the checks run.
type round int

const (
	own round = iota
	lent
)

func (r round) String() string {
	if r == lent {
		return "lent"
	}
	return "own"
}

// reporter is what a check needs of a *testing.T.
type reporter interface {
	Helper()
	Context() context.Context
	Cleanup(func())
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Failed() bool
	Skipped() bool
}

// check is one sentence of the contract, or a few that belong together.
type check struct {
	// name is subject/what.
	name string
	// rule is the sentence, as package provider has it or close to it.
	rule string
	// needs are what the provider and the harness must have.
	needs []need
	// run fails its t if the sentence is not kept.
	run func(t *env)
}

// need says why a check does not apply, or nothing if it does.
type need func(t *env) string

// checks returns all checks, in the order in which they are best read.
func checks() []check {
	var all []check
	for _, group := range [][]check{
		publishChecks(),
		receiveChecks(),
		settleChecks(),
		leaseChecks(),
		orderChecks(),
		dedupeChecks(),
		claimsChecks(),
		delaysChecks(),
		lendChecks(),
		deadChecks(),
		statsChecks(),
		closeChecks(),
		factsChecks(),
		outageChecks(),
		killChecks(),
	} {
		all = append(all, group...)
	}
	return all
}

// on runs one check. A failure is followed by the sentence that it is about.
func (c check) on(t reporter, r round, h Harness) {
	t.Helper()
	e := newEnv(t, r, h)
	defer func() {
		if t.Failed() {
			t.Logf("check %s of %s enforces: %s", c.name, e.p.Name, c.rule)
		}
	}()
	for _, n := range c.needs {
		if why := n(e); why != "" {
			t.Skipf("%s", why)
		}
	}
	c.run(e)
}

// The needs that several subjects have.

func needDelays(t *env) string {
	if t.p.Delays == nil {
		return "absent: the provider has no Delays"
	}
	return ""
}

func needOwnDelays(t *env) string {
	if t.p.Delays == nil || t.round == lent {
		return "absent: no Delays of the provider's own"
	}
	return ""
}

func needClaims(t *env) string {
	if t.p.Claims == nil {
		return "absent: the provider has no Claims"
	}
	return ""
}

func needOwnClaims(t *env) string {
	if t.p.Claims == nil || t.round == lent {
		return "absent: no Claims of the provider's own"
	}
	return ""
}

func needDead(t *env) string {
	if t.p.Dead == nil {
		return "absent: the provider has no Dead"
	}
	return ""
}

func needStats(t *env) string {
	if t.p.Stats == nil {
		return "absent: the provider has no Stats"
	}
	return ""
}

func needBound(t *env) string {
	if t.h.Bound == nil {
		return "absent: queues have no bounds"
	}
	return ""
}

// needRetry is for checks that retry a job without an ordering key.
func needRetry(t *env) string {
	if t.retries(false) {
		return ""
	}
	return "absent: the provider does not retry such a job by itself (JobFacts.Retries)"
}

func needOrder(t *env) string {
	if !t.facts().Ordered {
		return "absent: the provider keeps no order (JobFacts.Ordered)"
	}
	return ""
}

// needCrash is for checks in which a worker dies inside this process.
func needCrash(t *env) string {
	if t.h.Drop == nil && t.facts().Death != provider.LeaseOnRecord {
		return "not measured here: the harness has no Drop"
	}
	return ""
}
