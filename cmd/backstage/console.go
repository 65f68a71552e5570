package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/backstage-go/backstage/codegen"
)

// A console is what a command talks to.
type console struct {
	in       io.Reader
	out, err io.Writer
}

// fail prints an error and returns its exit code. What findings there are has
// been printed by the command.
func (c *console) fail(cmd *command, err error) int {
	code := exitCode(err)
	switch {
	case errors.Is(err, errFindings):
	case code == exitUsage:
		fmt.Fprintf(c.err, "backstage %s: %v\nusage: %s\nMore: backstage help %s\n", cmd.name, err, cmd.usage(), cmd.name)
	default:
		fmt.Fprintf(c.err, "backstage %s: %v\n", cmd.name, err)
	}
	return code
}

// json prints a document.
func (c *console) json(v any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func (c *console) unknown(name string) int {
	fmt.Fprintf(c.err, "backstage: there is no command %q", name)
	var names []string
	for _, cmd := range commands() {
		names = append(names, cmd.name)
	}
	for _, t := range topics() {
		names = append(names, t.name)
	}
	if near := codegen.Nearest(name, names); near != "" {
		fmt.Fprintf(c.err, "; did you mean %q?", near)
	}
	fmt.Fprint(c.err, "\nAll commands: backstage help\n")
	return exitUsage
}

// help prints what is known of a command or a topic, or of all.
func (c *console) help(names []string) int {
	if len(names) == 0 {
		fmt.Fprint(c.out, overview())
		return exitOK
	}
	if t, ok := findTopic(names[0]); ok {
		fmt.Fprint(c.out, t.page())
		return exitOK
	}
	cmd := find(names[0])
	if cmd == nil {
		return c.unknown(names[0])
	}
	fmt.Fprint(c.out, cmd.help())
	return exitOK
}
