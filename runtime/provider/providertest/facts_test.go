package providertest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime/provider"
)

func inMemoryProvider(t *testing.T) *provider.Provider {
	t.Helper()
	p, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// bare is a provider that can nothing but store jobs and hand them out.
func bare(t *testing.T) *provider.Provider {
	p := inMemoryProvider(t)
	p.Name, p.Delays, p.Claims, p.Stats, p.Dead, p.Lend = "bare", nil, nil, nil, nil, nil
	wrap(p, &hooks{facts: func(provider.JobFacts) provider.JobFacts {
		return provider.JobFacts{Death: provider.Session, FixedSlots: true}
	}})
	return p
}

func TestFactsHaveTheSameLinesForAll(t *testing.T) {
	names := func(p *provider.Provider) (names []string) {
		for _, f := range Facts(p) {
			names = append(names, f.Name)
			if f.Value == "" {
				t.Errorf("%s: the line %q is empty", p.Name, f.Name)
			}
		}
		return names
	}
	if diff := cmp.Diff(names(inMemoryProvider(t)), names(bare(t))); diff != "" {
		t.Errorf("lines (-memory +bare):\n%s", diff)
	}
}

func TestEveryFactIsMeasured(t *testing.T) {
	for _, f := range Facts(inMemoryProvider(t)) {
		for _, name := range f.checks {
			found := false
			for _, c := range checks() {
				found = found || c.name == name || strings.HasSuffix(name, "/") && strings.HasPrefix(c.name, name)
			}
			if !found {
				t.Errorf("fact %q is measured by %q, which is no check", f.Name, name)
			}
		}
		if len(f.checks) == 0 {
			t.Errorf("nothing measures fact %q", f.Name)
		}
	}
}

func TestTable(t *testing.T) {
	lines := strings.Split(Table(inMemoryProvider(t), bare(t)), "\n")
	for i, want := range []string{
		"| | memory | bare |",
		"| --- | --- | --- |",
		"| delays | own, finest 1ns, cancellable, countable | no |",
		"| claims (dedupe) | own, in one step with the job | no |",
		"| stats | yes | absent |",
	} {
		if lines[i] != want {
			t.Errorf("line %d is %q; want %q", i, lines[i], want)
		}
	}
	if n := len(lines); n != len(Facts(bare(t)))+3 || lines[n-1] != "" {
		t.Errorf("%d lines for %d facts", n, len(Facts(bare(t))))
	}
}
