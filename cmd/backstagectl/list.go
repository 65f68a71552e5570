package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/backstage-go/backstage/internal/command"
	"github.com/backstage-go/backstage/runtime/provider"
)

func listCommand(w world) *command.Command {
	return &command.Command{
		Name:     "dead list",
		Operands: "[ID…]",
		Summary:  "list dead letters, newest first",
		About: `List prints dead letters, one a line, newest first: all, or those that the flags
choose, or those that are named (backstagectl help letters). A letter is found again
by its ADDRESS; JOB is the id that its job has in logs and in every other place.

REASON is the message of the last failure, cut to fit; dead show has all of it.`,
		Examples: `backstagectl dead list
backstagectl dead list -queue mail -class exhausted -newer-than 2h
backstagectl dead list -reason 'connection refused' -limit 0 -o json | jq -r .address > ids.txt`,
		Codes: `0  the letters are listed, be there any or none
1  the broker could not be asked, or a letter that was named is not there
2  wrong usage`,
		Flags: func(set *flag.FlagSet) command.Action {
			l := &listing{broker: w.brokerFlags(set), format: command.FormatFlag(set, "text", "json"), selection: selectionFlags(set)}
			limitFlag(set, &l.limit)
			return l.run
		},
	}
}

func limitFlag(set *flag.FlagSet, limit *int) {
	set.IntVar(limit, "limit", 100, "at most so many; 0: all")
}

// listing is one run of dead list or dead show.
type listing struct {
	broker    *broker
	format    *string
	selection *selection
	limit     int
}

func (l *listing) run(ctx context.Context, c *command.Console, operands []string) error {
	return l.broker.use(ctx, func(p *provider.Provider) error {
		t := table{}
		row := func(letter *provider.DeadLetter) error {
			if *l.format == "json" {
				return c.JSONLine(letterOf(letter))
			}
			t.row(l.cells(letter)...)
			return nil
		}
		missing, more, err := l.each(ctx, c, p, operands, row)
		if err != nil {
			return err
		}
		if *l.format == "text" && len(t.rows) == 0 && len(missing) == 0 {
			fmt.Fprintln(c.Out, "there are no such dead letters")
		}
		if len(t.rows) > 0 {
			t.rows = append([][]string{{"ADDRESS", "DIED", "QUEUE", "TASK", "CLASS", "JOB", "REASON"}}, t.rows...)
			if err := t.write(c.Out, ""); err != nil {
				return err
			}
		}
		return l.end(c, missing, more)
	})
}

func (l *listing) cells(d *provider.DeadLetter) []string {
	task, job := d.Job.Task, d.Job.ID
	if d.Raw != nil {
		task, job = "-", "-"
	}
	return []string{clean(d.Address), age(l.broker.now().Sub(d.At)) + " ago", clean(d.Queue), clean(task), clean(d.Failure.Class), clean(job), cut(clean(d.Failure.Message), 60)}
}

// each calls f for the letters that are meant, up to the limit, and reports whether
// there are more.
func (l *listing) each(ctx context.Context, c *command.Console, p *provider.Provider, operands []string, f func(*provider.DeadLetter) error) (missing []wanted, more bool, err error) {
	dead, err := deadOf(p)
	if err != nil {
		return nil, false, err
	}
	look, err := l.selection.search(c, l.broker, dead, operands)
	if err != nil {
		return nil, false, err
	}
	n := 0
	err = look.each(ctx, func(letter *provider.DeadLetter) error {
		if n++; l.limit > 0 && n > l.limit {
			more = true
			return errEnough
		}
		return f(letter)
	})
	return look.missing, more, err
}

// end says what was not listed.
func (l *listing) end(c *command.Console, missing []wanted, more bool) error {
	if more {
		fmt.Fprintf(c.Err, "these are the first %d; -limit 0 shows all\n", l.limit)
	}
	for _, w := range missing {
		fmt.Fprintf(c.Err, "%s: there is no such dead letter\n", w)
	}
	if missing != nil {
		return command.ErrShown
	}
	return nil
}
