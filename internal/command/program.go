package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/backstage-go/backstage/codegen"
)

// The exit codes that all programs share. What a failed command ends with is
// Program.ExitCode's business.
const (
	OK    = 0
	Usage = 2
)

// Program is a command-line program of several commands.
type Program struct {
	// Name is what it is called by.
	Name string
	// About is what its overview begins with.
	About string
	// Commands are in the order in which one meets them.
	Commands []*Command
	// Topics are pages of help that are about no command.
	Topics []Topic
	// TopicsTitle stands above them in the overview.
	TopicsTitle string
	// Closing is what the overview ends with.
	Closing string
	// Early declares flags that may also stand before the command's name. All
	// commands that know them have them. Nil: none may.
	Early func(*flag.FlagSet)
	// Check looks at a command's flags before it runs. Nil: nothing to check.
	Check func(*flag.FlagSet) error
	// ExitCode returns the exit code for what a command returned, unless that is
	// wrong usage. Nil: 1.
	ExitCode func(error) int
}

// Run runs one command and returns the exit code.
func (p *Program) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &Console{In: stdin, Out: stdout, Err: stderr}
	early, args, err := p.early(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return p.help(c, nil)
	case err != nil:
		return p.wrong(c, err.Error())
	case len(args) == 0:
		fmt.Fprint(stderr, p.overview())
		return Usage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		return p.help(c, args[1:])
	case "-version", "--version":
		args[0] = "version"
	}
	cmd, rest := p.find(args)
	if cmd == nil {
		return p.unknown(c, args)
	}
	return p.run(ctx, c, cmd, append(early, rest...))
}

// early takes off the flags that stand before the command's name.
func (p *Program) early(args []string) (early, rest []string, err error) {
	if p.Early == nil {
		return nil, args, nil
	}
	set := newFlagSet(p.Name)
	set.Bool("version", false, "")
	p.Early(set)
	if err := set.Parse(args); err != nil {
		return nil, nil, err
	}
	n := len(args) - set.NArg()
	if set.Lookup("version").Value.String() == "true" {
		return nil, []string{"version"}, nil
	}
	return args[:n:n], args[n:], nil
}

// find returns the command that arguments begin with, and what follows its name.
// A name may be of two words.
func (p *Program) find(args []string) (*Command, []string) {
	for n := min(2, len(args)); n > 0; n-- {
		if cmd := p.Find(strings.Join(args[:n], " ")); cmd != nil {
			return cmd, args[n:]
		}
	}
	return nil, nil
}

// Find returns the command of a name, nil if there is none.
func (p *Program) Find(name string) *Command {
	for _, cmd := range p.Commands {
		if cmd.Name == name {
			return cmd
		}
	}
	return nil
}

// group returns the commands whose names begin with a word and have another.
func (p *Program) group(word string) []*Command {
	var out []*Command
	for _, cmd := range p.Commands {
		if strings.HasPrefix(cmd.Name, word+" ") {
			out = append(out, cmd)
		}
	}
	return out
}

// run runs a command with its flags and operands.
func (p *Program) run(ctx context.Context, c *Console, cmd *Command, args []string) int {
	set, do := cmd.FlagSet()
	operands, err := parse(set, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(c.Out, p.page(cmd))
		return OK
	case err != nil:
		return p.fail(c, cmd, &UsageError{err.Error()})
	case len(operands) > 0 && cmd.Operands == "":
		return p.fail(c, cmd, Usagef("it takes no %q", operands[0]))
	case slices.Contains(operands, ""):
		return p.fail(c, cmd, Usagef("an argument is empty: is a variable of the shell not set?"))
	}
	if p.Check != nil {
		if err := p.Check(set); err != nil {
			return p.fail(c, cmd, err)
		}
	}
	if err := do(ctx, c, operands); err != nil {
		return p.fail(c, cmd, err)
	}
	return OK
}

// fail prints an error and returns its exit code.
func (p *Program) fail(c *Console, cmd *Command, err error) int {
	var usage *UsageError
	switch {
	case errors.As(err, &usage):
		fmt.Fprintf(c.Err, "%s %s: %v\nusage: %s\nMore: %s help %s\n", p.Name, cmd.Name, err, p.usage(cmd), p.Name, cmd.Name)
		return Usage
	case !errors.Is(err, ErrShown):
		fmt.Fprintf(c.Err, "%s %s: %v\n", p.Name, cmd.Name, err)
	}
	if p.ExitCode == nil {
		return 1
	}
	return p.ExitCode(err)
}

// unknown says that there is no such command, and which one may be meant.
func (p *Program) unknown(c *Console, args []string) int {
	if group := p.group(args[0]); group != nil && len(args) == 1 {
		fmt.Fprint(c.Err, p.groupPage(args[0], group))
		return Usage
	}
	name := args[0]
	if len(args) > 1 && (p.group(name) != nil || p.Find(name) == nil && strings.Contains(p.nearest(name+" "+args[1]), " ")) {
		name += " " + args[1]
	}
	text := fmt.Sprintf("there is no command %q", name)
	if near := p.nearest(name); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return p.wrong(c, text)
}

func (p *Program) wrong(c *Console, text string) int {
	fmt.Fprintf(c.Err, "%s: %s\nAll commands: %s help\n", p.Name, text, p.Name)
	return Usage
}

func (p *Program) nearest(name string) string {
	var names []string
	for _, cmd := range p.Commands {
		names = append(names, cmd.Name)
	}
	for _, t := range p.Topics {
		names = append(names, t.Name)
	}
	return codegen.Nearest(name, names)
}
