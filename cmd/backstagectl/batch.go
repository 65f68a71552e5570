package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/backstage-go/backstage/cmd/backstagectl/internal/batch"
	"github.com/backstage-go/backstage/internal/command"
	"github.com/backstage-go/backstage/providers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// batching is one run of dead replay or dead discard.
type batching struct {
	action    batch.Action
	broker    *broker
	format    *string
	selection *selection
	all, yes  bool
	rate      float64
	path      string // of the journal
}

func batchFlags(w world, set *flag.FlagSet, action batch.Action) *batching {
	b := &batching{action: action, broker: w.brokerFlags(set), format: command.FormatFlag(set, "text", "json"), selection: selectionFlags(set)}
	set.BoolVar(&b.all, "all", false, "all dead letters, where nothing else chooses")
	set.BoolVar(&b.yes, "yes", false, "do it; without this flag nothing is done")
	set.Float64Var(&b.rate, "rate", 100, "at most so many `jobs` a second; 0: as fast as the broker takes them")
	set.StringVar(&b.path, "journal", "", "keep the plan and its progress in this `file`, or go on with it")
	return b
}

func (b *batching) run(ctx context.Context, c *command.Console, operands []string) error {
	if b.rate < 0 || math.IsNaN(b.rate) || math.IsInf(b.rate, 0) {
		return command.Usagef("-rate %v: write how many jobs a second, or 0 for no limit", b.rate)
	}
	journal, err := b.open()
	if err != nil {
		return err
	}
	chosen := b.selection.words(operands)
	if journal != nil {
		defer journal.Close()
		if err := b.fits(journal.Plan, chosen); err != nil {
			return err
		}
		b.broker.url = cmp.Or(b.broker.url, journal.Plan.URL)
	} else if len(chosen) == 0 {
		return command.Usagef("say which: ids, flags that choose, or -all")
	}
	return b.broker.use(ctx, func(p *provider.Provider) error {
		dead, err := deadOf(p)
		if err != nil {
			return err
		}
		plan := batch.Plan{}
		if journal != nil {
			plan = journal.Plan
		} else if plan, err = b.plan(ctx, c, p, operands); err != nil {
			return err
		}
		if journal == nil && b.path != "" {
			if journal, err = batch.Create(b.path, plan); err != nil {
				return err
			}
			defer journal.Close()
		}
		report := newReport(b, c, &plan, journal)
		if !b.yes {
			return report.plan()
		}
		if b.path == "" && plan.Older > 0 && len(plan.Letters) > 1 {
			return fmt.Errorf("%s left out, because newer ones of the same jobs are in the plan: name a file with -journal, or this run, once interrupted, could not be repeated without replaying them too", count(plan.Older, "letter"))
		}
		return b.do(ctx, dead, &plan, journal, report)
	})
}

// open returns the journal that is there, nil if there is none yet.
func (b *batching) open() (*batch.Journal, error) {
	if b.path == "" {
		return nil, nil
	}
	journal, err := batch.Open(b.path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, batch.ErrNoPlan) {
		return nil, nil
	}
	return journal, err
}

// fits refuses to go on with the plan of something else.
func (b *batching) fits(plan batch.Plan, chosen []string) error {
	switch {
	case plan.Action != b.action:
		return command.Usagef("%s has a plan to %s, not to %s", b.path, plan.Action, b.action)
	case b.broker.url != "" && providers.WithoutSecrets(b.broker.url) != plan.URL:
		return command.Usagef("%s has a plan for %s, not for %s", b.path, plan.URL, providers.WithoutSecrets(b.broker.url))
	case len(chosen) > 0 && !slices.Equal(chosen, plan.Selection):
		return command.Usagef("%s has a plan for %q; leave the selection away to go on with it, or name another file for another plan", b.path, plan.Selection)
	}
	return nil
}

// plan finds the letters that are meant, and fixes them.
func (b *batching) plan(ctx context.Context, c *command.Console, p *provider.Provider, operands []string) (batch.Plan, error) {
	plan := batch.Plan{
		Action: b.action, URL: providers.WithoutSecrets(b.broker.url), MadeAt: b.broker.now().UTC(),
		Selection: b.selection.words(operands), Missing: []string{},
	}
	look, err := b.selection.search(c, b.broker, p.Dead, operands)
	if err != nil {
		return plan, err
	}
	if b.all && (look.byName() || len(plan.Selection) > 1) {
		return plan, command.Usagef("-all is for where nothing else chooses")
	}
	var letters []batch.Letter
	err = look.each(ctx, func(l *provider.DeadLetter) error {
		letters = append(letters, batch.LetterOf(l))
		if p.Claims == nil && l.Job.Dedupe.Key != "" && b.action == batch.Replay {
			plan.Unclaimed++
		}
		return nil
	})
	if err != nil {
		return plan, err
	}
	plan.Add(letters)
	for _, w := range look.missing {
		plan.Missing = append(plan.Missing, w.String())
	}
	return plan, nil
}

// do does what is planned, and reports it.
func (b *batching) do(ctx context.Context, dead provider.DeadLetters, plan *batch.Plan, journal *batch.Journal, report *report) error {
	run := &batch.Run{Dead: dead, Plan: plan, Journal: journal, Rate: b.rate, Timeout: b.broker.timeout, Report: report.add}
	report.begin()
	err := run.Do(ctx)
	if wrong := report.end(); wrong != nil {
		return wrong
	}
	if err != nil {
		fmt.Fprintf(report.console.Err, "backstagectl dead %s: %v\n", b.action, shownSafely(err))
		report.howToGoOn()
	}
	if err != nil || report.tally.failed() {
		return command.ErrShown
	}
	return nil
}
