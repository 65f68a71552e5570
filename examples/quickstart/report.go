package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	quickstartv1 "github.com/backstage-go/backstage/examples/quickstart/gen/quickstart/v1"
	"github.com/backstage-go/backstage/runtime/provider"
)

// healthy reports whether an order is one that will be charged at the first
// attempt.
func healthy(order *quickstartv1.ChargeCardRequest) bool {
	for _, prefix := range []string{"unknown", "flaky", "down"} {
		if strings.HasPrefix(order.GetAccount(), prefix) {
			return false
		}
	}
	return true
}

// print prints the closing table. It fails if the numbers do not add up to the
// lines of the file: then a job was lost.
func (t *tally) print(ctx context.Context, ledger *ledger, out io.Writer) error {
	counts := make(map[string]int)
	for name, query := range map[string]string{
		"charged":   `select count(*) from effect where kind='charge'`,
		"receipts":  `select count(*) from effect where kind='receipt'`,
		"retried":   `select count(distinct job_id) from start where attempt>1 and job_id in (select job_id from effect)`,
		"restarted": `select count(*) from (select job_id from start where attempt=1 group by job_id having count(*)>1)`,
	} {
		n, err := ledger.count(ctx, query)
		if err != nil {
			return err
		}
		counts[name] = n
	}
	classes := make(map[string]int)
	for _, letter := range t.letters {
		classes[letter.Failure.Class]++
	}
	victimStarts, err := ledger.count(ctx, `select count(*) from start where job_id=?`, t.victimJob)
	if err != nil {
		return err
	}
	victimEffects, err := ledger.count(ctx, `select count(*) from effect where job_id=?`, t.victimJob)
	if err != nil {
		return err
	}

	lines := t.orders + len(t.malformed)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(n int, text string) { fmt.Fprintf(w, "%d\t  %s\n", n, text) }
	fmt.Fprintln(out)
	row(lines, "lines in the file")
	row(len(t.malformed), "= malformed, reported above")
	row(t.duplicates, "+ duplicates of an order, merged into the first")
	row(counts["charged"], "+ charged, each once")
	row(classes[provider.ClassPermanent], "+ dead letters: permanent (unknown account), at once")
	row(classes[provider.ClassExhausted], "+ dead letters: exhausted (bank down), after 5 attempts")
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	row(counts["receipts"], "receipts sent, each once: the second step of every charge")
	row(counts["retried"], "jobs succeeded after a failed attempt")
	row(counts["restarted"], "jobs started again: those that the dead worker held")
	if err := w.Flush(); err != nil {
		return err
	}
	if t.victim != "" {
		fmt.Fprintf(out, "\njob %s (order %s): %d starts, %d charge\n", t.victimJob, t.victim, victimStarts, victimEffects)
	}
	sum := len(t.malformed) + t.duplicates + counts["charged"] + len(t.letters)
	if sum != lines || counts["receipts"] != counts["charged"] {
		return fmt.Errorf("the numbers do not add up: %d of %d lines, %d receipts for %d charges", sum, lines, counts["receipts"], counts["charged"])
	}
	return nil
}
