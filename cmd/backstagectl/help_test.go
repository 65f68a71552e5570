package main

import (
	"encoding/json"
	"flag"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/cmd/backstagectl/internal/ctltest"
	"github.com/backstage-go/backstage/internal/command/transcript"
	"github.com/backstage-go/backstage/runtime/provider"
)

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	r := &rig{T: t, now: time.Now}
	for _, cmd := range program(world{getenv: func(string) string { return "" }}).Commands {
		t.Run(cmd.Name, func(t *testing.T) {
			t.Parallel()
			help := r.ctl(append([]string{"help"}, strings.Fields(cmd.Name)...)...)
			if help.Code != 0 || help.Stderr != "" {
				t.Errorf("help: %+v", help)
			}
			for _, want := range []string{"usage: backstagectl " + cmd.Name, "\nExamples:\n  backstagectl ", "\nExit codes:\n  0  "} {
				if !strings.Contains(help.Stdout, want) {
					t.Errorf("help has no %q:\n%s", want, help.Stdout)
				}
			}
			set, _ := cmd.FlagSet()
			set.VisitAll(func(f *flag.Flag) {
				if f.Usage == "" || !strings.Contains(help.Stdout, "\n  -"+f.Name) {
					t.Errorf("flag -%s is not explained:\n%s", f.Name, help.Stdout)
				}
			})
			shortLines(t, help.Stdout, 110)
		})
	}
}

func TestExamplesAreRightUses(t *testing.T) {
	t.Parallel()
	r := &rig{T: t, now: time.Now}
	n := 0
	for _, cmd := range program(world{getenv: func(string) string { return "" }}).Commands {
		for line := range strings.Lines(cmd.Examples) {
			_, line, found := strings.Cut(line, "backstagectl ")
			line = regexp.MustCompile(` [|>#].*|\n`).ReplaceAllString(line, "")
			if !found {
				t.Errorf("%s: %q is no example", cmd.Name, line)
			}
			n++
			// Help is printed when all flags before it are known and well.
			r.want(r.ctl(append(transcript.Words(line), "-h")...), 0, "usage: backstagectl "+cmd.Name)
		}
	}
	if n < 15 {
		t.Errorf("%d examples", n)
	}
}

// shortLines fails a test for lines that do not fit a terminal.
func shortLines(t *testing.T, text string, most int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if len([]rune(line)) > most || strings.HasSuffix(line, " \n") {
			t.Errorf("a line too long for a terminal, or with white space at its end: %q", line)
		}
	}
}

func TestTopicsFitATerminal(t *testing.T) {
	t.Parallel()
	r := &rig{T: t, now: time.Now}
	for _, topic := range topics() {
		help := r.ctl("help", topic.Name)
		if help.Code != 0 || !strings.Contains(r.ctl("help").Stdout, "\n  "+topic.Name+" ") {
			t.Errorf("help %s: %+v", topic.Name, help)
		}
		shortLines(t, help.Stdout, 90)
	}
}

// The promise of help json: it names every field that there is, and a list is never
// null.
func TestEveryFieldOfJSONIsInTheHelp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	full := ctltest.Job("A-1")
	full.Headers, full.Requires = map[string]string{}, []string{"x"}
	full.Replays = []provider.Replay{{At: time.Now(), Failures: 1}}
	r.bury(full, ctltest.Job("A-2"))
	for _, words := range [][]string{
		{"stats"}, {"dead", "list"}, {"dead", "show", "A-1"}, {"dead", "show", "A-2"}, {"dead", "show", "-url", "odd:unknown", "-queue", "orders"},
		{"dead", "discard", "A-1"}, {"dead", "replay", "A-2", "-yes"}, {"version"},
	} {
		got := r.ctl(append(words, "-o", "json")...)
		r.want(got, 0)
		for line := range strings.Lines(got.Stdout) {
			var document map[string]any
			if err := json.Unmarshal([]byte(line), &document); err != nil {
				t.Fatalf("%v: %v\n%s", words, err, line)
			}
			named(t, document)
		}
	}
}

// named fails the test for fields that the help does not name.
func named(t *testing.T, document map[string]any) {
	t.Helper()
	for name, value := range document {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(aboutJSON) {
			t.Errorf("help json does not name %q", name)
		}
		switch value := value.(type) {
		case map[string]any:
			named(t, value)
		case []any:
			for _, one := range value {
				if object, ok := one.(map[string]any); ok {
					named(t, object)
				}
			}
		}
	}
	for _, list := range []string{"requires", "history", "replayed"} {
		if value, there := document[list]; there && value == nil {
			t.Errorf("%q is null", list)
		}
	}
}
