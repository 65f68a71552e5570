package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// A command is one thing that backstage does.
type command struct {
	name string
	// operands are what follows the flags: "[DIR]".
	operands string
	// summary is one line, about is what one should know.
	summary, about string
	// examples are command lines with a comment.
	examples string
	// codes says what the exit codes mean here.
	codes string
	// flags declares the command's flags and returns what it does.
	flags func(*flag.FlagSet) action
}

// An action does what a command does, with the operands.
type action func(ctx context.Context, c *console, operands []string) error

func (cmd *command) run(c *console, args []string) int {
	set := cmd.flagSet()
	do := cmd.flags(set)
	operands, err := parse(set, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(c.out, cmd.help())
		return exitOK
	case err != nil:
		return c.fail(cmd, &usageError{err.Error()})
	case len(operands) > 0 && cmd.operands == "":
		return c.fail(cmd, usagef("it takes no %q", operands[0]))
	}
	if err := missing(set); err != nil {
		return c.fail(cmd, err)
	}
	if err := do(context.Background(), c, operands); err != nil {
		return c.fail(cmd, err)
	}
	return exitOK
}

// missing refuses to work in a folder that is not there, which would look like
// one that has nothing in it.
func missing(set *flag.FlagSet) error {
	dir := set.Lookup("C")
	if dir == nil || dir.Value.String() == "" {
		return nil
	}
	info, err := os.Stat(dir.Value.String())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("-C %s: there is no such folder", dir.Value)
	case err == nil && !info.IsDir():
		return fmt.Errorf("-C %s: it is no folder", dir.Value)
	}
	return err
}

func (cmd *command) flagSet() *flag.FlagSet {
	set := flag.NewFlagSet(cmd.name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return set
}

// parse reads flags that may stand before and behind operands.
func parse(set *flag.FlagSet, args []string) ([]string, error) {
	var operands []string
	for {
		if err := set.Parse(args); err != nil {
			return nil, err
		}
		rest := set.Args()
		if len(rest) == 0 {
			return operands, nil
		}
		if n := len(args) - len(rest); n > 0 && args[n-1] == "--" {
			return append(operands, rest...), nil
		}
		operands = append(operands, rest[0])
		args = rest[1:]
	}
}

func (cmd *command) usage() string {
	line := "backstage " + cmd.name
	hasFlags := false
	set := cmd.flagSet()
	cmd.flags(set)
	set.VisitAll(func(*flag.Flag) { hasFlags = true })
	if hasFlags {
		line += " [flags]"
	}
	return strings.TrimSpace(line + " " + cmd.operands)
}

// help is what backstage help prints of the command.
func (cmd *command) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s\n\n%s\n", cmd.usage(), cmd.about)
	set := cmd.flagSet()
	cmd.flags(set)
	var flags strings.Builder
	set.SetOutput(&flags)
	set.PrintDefaults()
	if flags.Len() > 0 {
		fmt.Fprintf(&b, "\nFlags:\n%s", flags.String())
	}
	fmt.Fprintf(&b, "\nExamples:\n%s\nExit codes:\n%s", indent(cmd.examples), indent(cmd.codes))
	return b.String()
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}
