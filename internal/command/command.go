package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Command is one thing that a program does.
type Command struct {
	// Name is one word, or two: "dead list".
	Name string
	// Operands are what follows the flags: "[DIR]". Empty: it takes none.
	Operands string
	// Summary is one line, About is what one should know.
	Summary, About string
	// Examples are command lines with a comment.
	Examples string
	// Codes says what the exit codes mean here.
	Codes string
	// Flags declares the command's flags and returns what it does.
	Flags func(*flag.FlagSet) Action
}

// Action does what a command does, with the operands.
type Action func(ctx context.Context, c *Console, operands []string) error

// FlagSet returns the command's flags and what it does with them.
func (cmd *Command) FlagSet() (*flag.FlagSet, Action) {
	set := newFlagSet(cmd.Name)
	return set, cmd.Flags(set)
}

func newFlagSet(name string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
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

// FormatFlag declares -o with the formats that a command can print. The first is
// the default.
func FormatFlag(set *flag.FlagSet, formats ...string) *string {
	format := formats[0]
	set.Func("o", fmt.Sprintf("`format`: %s (default %s)", strings.Join(formats, ", "), format), func(s string) error {
		if !slices.Contains(formats, s) {
			return fmt.Errorf("there are %s", strings.Join(formats, ", "))
		}
		format = s
		return nil
	})
	return &format
}

// ErrShown ends a command that has printed what is wrong.
var ErrShown = errors.New("what is wrong was printed")

// UsageError is a wrong use of a command.
type UsageError struct{ text string }

// Error says what is wrong.
func (e *UsageError) Error() string { return e.text }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}
