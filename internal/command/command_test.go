package command_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/internal/command"
)

// shop is a program with a command, and with two of a group.
func shop() *command.Program {
	say := func(name string) *command.Command {
		return &command.Command{Name: name, Operands: "[WORD…]", Summary: "say words", About: "It says words.",
			Examples: "shop " + name + " hello", Codes: "0  always",
			Flags: func(set *flag.FlagSet) command.Action {
				loud, from := set.Bool("loud", false, "with an `!`"), set.String("from", "", "who says it")
				return func(_ context.Context, c *command.Console, words []string) error {
					if len(words) == 0 {
						return command.Usagef("say what?")
					}
					if words[0] == "fail" {
						return errors.New("it failed")
					}
					_, err := fmt.Fprintln(c.Out, name, *loud, *from, strings.Join(words, " "))
					return err
				}
			}}
	}
	return &command.Program{Name: "shop", About: "Shop says words.", Closing: "That is all.\n",
		Commands: []*command.Command{say("say"), say("dead say"), say("dead whisper")},
		Early:    func(set *flag.FlagSet) { set.String("from", "", "") }}
}

func run(words ...string) (stdout, stderr string, code int) {
	var out, err bytes.Buffer
	code = shop().Run(context.Background(), words, strings.NewReader(""), &out, &err)
	return out.String(), err.String(), code
}

func TestRun(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		stdout, stderr string
		code           int
	}{
		"say hello":                        {"say false  hello\n", "", 0},
		"say -loud a -from me b -- -from":  {"say true me a b -from\n", "", 0},
		"-from me say hello":               {"say false me hello\n", "", 0},
		"--from=me dead say hello -loud":   {"dead say true me hello\n", "", 0},
		"dead whisper -from you -loud a b": {"dead whisper true you a b\n", "", 0},
		"say":                              {"", "shop say: say what?\nusage: shop say [flags] [WORD…]\nMore: shop help say\n", 2},
		"say a ":                           {"", "shop say: an argument is empty: is a variable of the shell not set?\nusage: shop say [flags] [WORD…]\nMore: shop help say\n", 2},
		"say fail":                         {"", "shop say: it failed\n", 1},
		"sya":                              {"", "shop: there is no command \"sya\"; did you mean \"say\"?\nAll commands: shop help\n", 2},
		"dead sya":                         {"", "shop: there is no command \"dead sya\"; did you mean \"dead say\"?\nAll commands: shop help\n", 2},
		"daed say":                         {"", "shop: there is no command \"daed say\"; did you mean \"dead say\"?\nAll commands: shop help\n", 2},
		"-form me say hello":               {"", "shop: flag provided but not defined: -form\nAll commands: shop help\n", 2},
	} {
		stdout, stderr, code := run(strings.Split(line, " ")...)
		if stdout != want.stdout || stderr != want.stderr || code != want.code {
			t.Errorf("shop %s: %d\n%s%s\nwant %d\n%s%s", line, code, stdout, stderr, want.code, want.stdout, want.stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	overview, _, _ := run("help")
	for _, want := range []string{"Shop says words.\n", "\n  say          say words\n", "\n  dead whisper say words\n", "That is all.\n"} {
		if !strings.Contains(overview, want) {
			t.Errorf("the overview has no %q:\n%s", want, overview)
		}
	}
	for _, words := range [][]string{{}, {"-from", "me"}} {
		if stdout, stderr, code := run(words...); stdout != "" || stderr != overview || code != command.Usage {
			t.Errorf("without a command: %d, %q, %q; want the overview on standard error", code, stdout, stderr)
		}
	}
	if stdout, _, code := run("-h"); stdout != overview || code != command.OK {
		t.Errorf("-h: %d, %q; want the overview", code, stdout)
	}
	page, _, code := run("help", "dead", "say")
	if flagged, _, _ := run("dead", "say", "-h"); flagged != page || code != command.OK || !strings.HasPrefix(page, "usage: shop dead say [flags] [WORD…]\n\nIt says words.\n\nFlags:\n") {
		t.Errorf("help of a command: %d\n%s\nand by -h\n%s", code, page, flagged)
	}
	group, _, code := run("help", "dead")
	if _, alone, wrong := run("dead"); alone != group || code != command.OK || wrong != command.Usage || !strings.Contains(group, "\n  dead whisper say words\n") {
		t.Errorf("the group: %d\n%s\nand as a command: %d\n%s", code, group, wrong, alone)
	}
}
