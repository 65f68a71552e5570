package providertest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Fact is one line of the table of what a provider does and how well.
type Fact struct {
	// Name says what it is about.
	Name string
	// Value is what the provider claims; the suite fails if it is less.
	Value string
	// checks names those that measure it; those of a subject for "subject/".
	checks []string
}

// Facts returns what a provider claims, always the same lines in the same order.
func Facts(p *provider.Provider) []Fact {
	facts := []Fact{
		{"delays", delaysOf(p.Delays), []string{"delays/"}},
		{"claims (dedupe)", claimsOf(p.Claims), []string{"claims/", "dedupe/"}},
		{"stats", has(p.Stats != nil), []string{"stats/"}},
		{"dead letters", has(p.Dead != nil), []string{"dead/"}},
		{"lends delays and claims", has(p.Lend != nil), []string{"lend/"}},
	}
	return append(facts, jobFacts(p.Jobs.Facts())...)
}

func jobFacts(f provider.JobFacts) []Fact {
	return []Fact{
		{"a dead worker is found out by", choose(f.Death == provider.Session, "its session", "its lease on record"), []string{"facts/death", "lease/takeover"}},
		{"a settlement without error is", choose(f.Confirmed, "on record", "sent"), []string{"facts/confirmed", "facts/carried", "kill/acknowledged"}},
		{"late settlements are refused", yes(f.RefusesLate), []string{"lease/stale settlement"}},
		{"job and next jobs in one step", yes(f.AtomicHandoff), []string{"facts/atomic handoff"}},
		{"crashes are counted", choose(f.ExactCrashes, "exactly", "as an upper bound"), []string{"facts/exact crashes"}},
		{"retries without delays", retriesOf(f.Retries), []string{"facts/retries"}},
		{"order per key", yes(f.Ordered), []string{"order/"}},
		{"slots of lanes are", choose(f.FixedSlots, "fixed", "shared"), []string{"facts/slots"}},
		{"survives its process", yes(f.Durable), []string{"publish/durable", "kill/published"}},
	}
}

func delaysOf(d provider.Delays) string {
	if d == nil {
		return "no"
	}
	f := d.Facts()
	words := []string{choose(f.Lent, "lent", "own"), "finest " + f.Finest.String()}
	if f.Longest > 0 {
		words = append(words, "longest "+f.Longest.Round(time.Second).String())
	}
	words = append(words, choose(f.Addressable, "cancellable", "not cancellable"))
	return strings.Join(append(words, choose(f.Countable, "countable", "not countable")), ", ")
}

func claimsOf(c provider.Claims) string {
	if c == nil {
		return "no"
	}
	return choose(c.Facts().Lent, "lent", "own, in one step with the job")
}

func retriesOf(r provider.Retries) string {
	switch r {
	case provider.RetriesAll:
		return "all jobs"
	case provider.RetriesOrdered:
		return "ordered jobs"
	}
	return "no"
}

func has(present bool) string { return choose(present, "yes", "absent") }

func yes(b bool) string { return choose(b, "yes", "no") }

func choose(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

// Table returns the facts of providers side by side, as a table in Markdown.
func Table(providers ...*provider.Provider) string {
	var head, line strings.Builder
	head.WriteString("| |")
	line.WriteString("| --- |")
	var rows []string
	for i, p := range providers {
		fmt.Fprintf(&head, " %s |", p.Name)
		line.WriteString(" --- |")
		for j, f := range Facts(p) {
			if i == 0 {
				rows = append(rows, "| "+f.Name+" |")
			}
			rows[j] += " " + f.Value + " |"
		}
	}
	return strings.Join(append([]string{head.String(), line.String()}, rows...), "\n") + "\n"
}

// results keeps what became of the checks, for the table.
type results struct {
	mu   sync.Mutex
	runs map[string]result
}

// result is what became of one check in all its rounds.
type result struct{ passed, failed, skipped int }

func newResults() *results { return &results{runs: make(map[string]result)} }

// run runs a check and keeps its result.
func (r *results) run(t *testing.T, c check, round round, h Harness) {
	t.Helper()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		n := r.runs[c.name]
		switch {
		case t.Failed():
			n.failed++
		case t.Skipped():
			n.skipped++
		default:
			n.passed++
		}
		r.runs[c.name] = n
	}()
	c.on(t, round, h)
}

// table lists the facts of a provider, each with how it was measured.
func (r *results) table(p *provider.Provider) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, f := range Facts(p) {
		fmt.Fprintf(&b, "%-32s %-48s %s\n", f.Name, f.Value, r.measured(f))
	}
	return b.String()
}

// measured says how a fact was measured.
func (r *results) measured(f Fact) string {
	var sum result
	for name, n := range r.runs {
		for _, c := range f.checks {
			if name == c || strings.HasSuffix(c, "/") && strings.HasPrefix(name, c) {
				sum.passed += n.passed
				sum.failed += n.failed
			}
		}
	}
	switch {
	case sum.failed > 0:
		return fmt.Sprintf("FAILED in %d checks", sum.failed)
	case sum.passed == 0:
		return "not measured"
	}
	return fmt.Sprintf("measured by %d checks", sum.passed)
}
