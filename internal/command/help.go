package command

import (
	"flag"
	"fmt"
	"strings"
)

// Topic is a page of help that is about no command.
type Topic struct {
	// Name is what it is asked for by, and Summary is one line.
	Name, Summary string
	// Text is the page.
	Text string
}

// help prints what is known of a command, a group of them or a topic, or of all.
func (p *Program) help(c *Console, names []string) int {
	if len(names) == 0 {
		fmt.Fprint(c.Out, p.overview())
		return OK
	}
	for _, t := range p.Topics {
		if t.Name == names[0] {
			fmt.Fprintf(c.Out, "%s: %s\n\n%s", t.Name, t.Summary, t.Text)
			return OK
		}
	}
	if cmd, _ := p.find(names); cmd != nil {
		fmt.Fprint(c.Out, p.page(cmd))
		return OK
	}
	if group := p.group(names[0]); group != nil && len(names) == 1 {
		fmt.Fprint(c.Out, p.groupPage(names[0], group))
		return OK
	}
	return p.unknown(c, names)
}

// overview is what the program prints when it is called without a command.
func (p *Program) overview() string {
	width := len("help")
	for _, cmd := range p.Commands {
		width = max(width, len(cmd.Name))
	}
	for _, t := range p.Topics {
		width = max(width, len(t.Name))
	}
	var b strings.Builder
	line := func(name, summary string) { fmt.Fprintf(&b, "  %-*s %s\n", width, name, summary) }
	fmt.Fprintf(&b, "%s\n\nusage: %s COMMAND [flags]\n\n", p.About, p.Name)
	for _, cmd := range p.Commands {
		line(cmd.Name, cmd.Summary)
	}
	line("help", "what is above, or more about one command")
	if p.Topics != nil {
		fmt.Fprintf(&b, "\n%s (%s help TOPIC):\n\n", p.TopicsTitle, p.Name)
	}
	for _, t := range p.Topics {
		line(t.Name, t.Summary)
	}
	fmt.Fprintf(&b, "\n%s", p.Closing)
	return b.String()
}

// groupPage is what a command's first word alone prints.
func (p *Program) groupPage(word string, group []*Command) string {
	width := 0
	for _, cmd := range group {
		width = max(width, len(cmd.Name))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s %s COMMAND [flags]\n\n", p.Name, word)
	for _, cmd := range group {
		fmt.Fprintf(&b, "  %-*s %s\n", width, cmd.Name, cmd.Summary)
	}
	fmt.Fprintf(&b, "\nMore about each: %s help %s COMMAND.\n", p.Name, word)
	return b.String()
}

func (p *Program) usage(cmd *Command) string {
	line := p.Name + " " + cmd.Name
	hasFlags := false
	set, _ := cmd.FlagSet()
	set.VisitAll(func(*flag.Flag) { hasFlags = true })
	if hasFlags {
		line += " [flags]"
	}
	return strings.TrimSpace(line + " " + cmd.Operands)
}

// page is what help prints of a command.
func (p *Program) page(cmd *Command) string {
	var b, flags strings.Builder
	fmt.Fprintf(&b, "usage: %s\n\n%s\n", p.usage(cmd), cmd.About)
	set, _ := cmd.FlagSet()
	set.SetOutput(&flags)
	set.PrintDefaults()
	if flags.Len() > 0 {
		fmt.Fprintf(&b, "\nFlags:\n%s", flags.String())
	}
	fmt.Fprintf(&b, "\nExamples:\n%s\nExit codes:\n%s", indent(cmd.Examples), indent(cmd.Codes))
	return b.String()
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}
