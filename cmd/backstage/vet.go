package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/backstage-go/backstage/codegen/compile"
	"github.com/backstage-go/backstage/internal/command"
)

func vetCommand() *command.Command {
	return &command.Command{
		Name:    "vet",
		Summary: "say what is wrong or odd in the schemas, as a whole",
		About: `Vet checks the schemas of a module as a whole, and generates nothing. Errors are
what generate refuses, among them what a plugin of buf, which sees one folder at
a time, cannot find: two tasks with one name on the wire, an alias that is the
name of a live task. Warnings are what works but hardly was meant:

  - a task service that shares a file with an ordinary service
  - a key made of a deprecated field, of no field, or of one marked debug_redact
  - a dedupe window that ends before a delayed job is due
  - retries that never come: max_age below one timeout or below the waits
  - a then that leads to a deprecated task
  - queues that differ only in case or separators
  - imports that are not used
  - schemas without any task service
  - schemas behind a symbolic link, which is not followed
  - a copy of Backstage's options of another version

` + whichSchemas,
		Examples: `backstage vet
backstage vet -strict        # in CI: warnings count
backstage vet -o json        # for other programs`,
		Codes: `0  no errors; with -strict: nothing at all
1  errors; with -strict: errors or warnings
2  wrong usage
3  it could not be done`,
		Flags: func(set *flag.FlagSet) command.Action {
			options, format := schemaFlags(set), command.FormatFlag(set, "text", "json")
			strict := set.Bool("strict", false, "exit with 1 for warnings too")
			return func(ctx context.Context, c *command.Console, _ []string) error {
				return vet(ctx, c, *options, *format, *strict)
			}
		},
	}
}

// vetted is the result of vet in JSON.
type vetted struct {
	Errors      int       `json:"errors"`
	Warnings    int       `json:"warnings"`
	Diagnostics []finding `json:"diagnostics"`
}

func vet(ctx context.Context, c *command.Console, o compile.Options, format string, strict bool) error {
	project, err := compile.Load(ctx, o)
	if err != nil {
		return err
	}
	project.Vet()
	found := project.Diagnostics
	errs, warnings := len(found.Errors()), len(found.Warnings())
	if format == "json" {
		err = c.JSON(vetted{Errors: errs, Warnings: warnings, Diagnostics: findingsOf(found)})
	} else {
		err = project.Report(c.Err)
		if len(found) > 0 {
			fmt.Fprintf(c.Err, "%s, %s\n", count(errs, "error"), count(warnings, "warning"))
		}
	}
	if err == nil && (errs > 0 || strict && warnings > 0) {
		return command.ErrShown
	}
	return err
}

// count says how many there are of something.
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
