package providertest

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// mutant is a provider that breaks one promise.
type mutant struct {
	// fails is the check that must find it out.
	fails string
	// also are checks that hold the same promise from another side.
	also []string
	// says is a part of what it must say, so that it fails for this reason.
	says string
	// round is in which it does it.
	round round
	// make breaks a provider as it is opened. Each check has a new one, of which
	// all that are opened share a state.
	make func() func(p *provider.Provider, h *hooks)
	// harness changes the harness, if not only the provider is broken.
	harness func(Harness) Harness
}

// TestEveryCheckFindsItsMutant runs the whole suite on each mutant: exactly the
// checks that are meant for it fail, for the reason that is meant.
func TestEveryCheckFindsItsMutant(t *testing.T) {
	for _, m := range mutants() {
		t.Run(m.fails, func(t *testing.T) {
			t.Parallel()
			m.test(t)
		})
	}
}

func (m mutant) test(t *testing.T) {
	var failed []string
	reason := ""
	for _, c := range checks() {
		if strings.HasPrefix(c.name, "kill/") {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			rec := record(t, c, m.round, m.broken(inMemory(t)))
			time.Sleep(2 * time.Hour) // what a mutant has left running may end
			if !rec.Failed() {
				return
			}
			failed = append(failed, c.name)
			if c.name == m.fails {
				reason = rec.String()
				return
			}
			if !slices.Contains(m.also, c.name) {
				t.Logf("%s:\n%s", c.name, rec)
			}
		})
	}
	want := append([]string{m.fails}, m.also...)
	slices.Sort(want)
	slices.Sort(failed)
	if !slices.Equal(failed, want) {
		t.Errorf("checks that failed: %q; want %q", failed, want)
	}
	if !strings.Contains(reason, m.says) {
		t.Errorf("it said:\n%s\nwant something with %q", reason, m.says)
	}
	if rule := "enforces: "; reason != "" && !strings.Contains(reason, rule) {
		t.Errorf("it did not say what it enforces:\n%s", reason)
	}
}

// broken puts the mutant around what the harness opens.
func (m mutant) broken(h Harness) Harness {
	if m.harness != nil {
		h = m.harness(h)
	}
	if m.make == nil {
		return h
	}
	mutate := m.make()
	open := h.Open
	h.Open = func() (*provider.Provider, error) {
		p, err := open()
		if err != nil {
			return nil, err
		}
		hooks := &hooks{}
		mutate(p, hooks)
		wrap(p, hooks)
		return p, nil
	}
	return h
}

// TestEveryCheckHasAMutant keeps the table whole.
func TestEveryCheckHasAMutant(t *testing.T) {
	has := make(map[string]bool)
	for _, m := range mutants() {
		has[m.fails] = true
	}
	known := make(map[string]bool)
	for _, c := range checks() {
		known[c.name] = true
		if !strings.HasPrefix(c.name, "kill/") && !has[c.name] {
			t.Errorf("no mutant fails %s", c.name)
		}
		if c.rule == "" {
			t.Errorf("%s enforces nothing", c.name)
		}
	}
	for name := range has {
		if !known[name] {
			t.Errorf("a mutant is meant to fail %q, which is no check", name)
		}
	}
}

// TestNoMutant runs what the mutants run without any: nothing may fail.
func TestNoMutant(t *testing.T) {
	for _, r := range []round{own, lent} {
		for _, c := range checks() {
			synctest.Test(t, func(t *testing.T) {
				rec := record(t, c, r, mutant{make: func() func(*provider.Provider, *hooks) {
					return func(*provider.Provider, *hooks) {}
				}}.broken(inMemory(t)))
				if rec.Failed() {
					t.Errorf("%v/%s:\n%s", r, c.name, rec)
				}
			})
		}
	}
}
