package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// binary is the program as a user has it. TestMain builds it.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "shop-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "shop.exe")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// shopCommand runs a command of the program to its end, and returns what it said.
func shopCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "BACKSTAGE_URL=", "SHOP_DATA=")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // a demo ends its processes then
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func wantLines(t *testing.T, out string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		if !regexp.MustCompile(pattern).MatchString(out) {
			t.Errorf("the output has no %q:\n%s", pattern, out)
		}
	}
}

func TestTheDemoKillsAWorkerAndItsNumbersAddUp(t *testing.T) {
	t.Parallel()
	out, err := shopCommand(t, "demo", "-data", t.TempDir(), "-orders", "100", "-rate", "0")
	if err != nil {
		t.Errorf("demo: %v\n%s", err, out)
	}
	wantLines(t, out,
		`worker-1 died`,
		`(?m)^ +100  orders accepted$`,
		`(?m)^ +98  = charged, each once$`,
		`(?m)^ +2  \+ refused by the bank, each once$`,
		`(?m)^ +0  \+ not finished yet$`,
		`(?m)^ +98  receipts mailed`,
		`(?m)^ +98  parcels booked`,
		`(?m)^ +2  dead letters: the refused ones`,
		`(?m)^ +0  dead letters of other jobs$`,
		`(?m)^ +10  runs after a failed one$`,
	)
}

func TestOrdersThatAreEnqueuedAgainAreDuplicates(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	produce := func(want string, args ...string) {
		t.Helper()
		out, err := shopCommand(t, append([]string{"produce", "-data", data}, args...)...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("produce %s: %v\n%s\nwant %q", args, err, out, want)
		}
	}
	produce("pressed 52 times: 50 orders accepted, 2 were duplicates", "-orders", "50")
	produce("pressed 52 times: 0 orders accepted, 52 were duplicates", "-orders", "50", "-first", "1")
	produce("pressed 26 times: 25 orders accepted, 1 were duplicates", "-orders", "25")
	out, err := shopCommand(t, "report", "-data", data)
	if err != nil {
		t.Errorf("report: %v", err)
	}
	wantLines(t, out, `(?m)^ +75  orders accepted$`, `(?m)^ +75  \+ not finished yet$`)
}

func TestWhatCannotWorkIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		want string
		args []string
	}{
		{"usage: shop", nil},
		{`no command "serve"`, []string{"serve"}},
		{`takes flags only, not "now"`, []string{"worker", "now"}},
		{"one process", []string{"produce", "-url", "memory:"}},
		{`unknown scheme "smoke"`, []string{"worker", "-url", "smoke:signals"}},
		{"Concurrency", []string{"worker", "-concurrency", "-1"}},
	} {
		args := test.args
		if len(args) > 0 {
			args = append(args[:1:1], append([]string{"-data", t.TempDir()}, args[1:]...)...)
		}
		out, err := shopCommand(t, args...)
		if err == nil || !strings.Contains(out, test.want) {
			t.Errorf("shop %s: %v\n%s\nwant an error that says %q", strings.Join(test.args, " "), err, out, test.want)
		}
	}
}
