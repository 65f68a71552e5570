package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// build compiles the demo as a user's go run does: it starts itself again as its
// own worker.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "quickstart.exe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

func TestTheDemoLosesNoOrderAndChargesNoneTwice(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), build(t)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`line 17 is no order`,
		`line 1204 is no order`,
		`line 2011 is no order: "order_id" is missing`,
		`worker \d+ died right after it charged A-\d+`,
		`(?m)^ *3000  lines in the file`,
		`(?m)^ *40  \+ duplicates`,
		`(?m)^ *2945  \+ charged, each once`,
		`(?m)^ *8  \+ dead letters: permanent`,
		`(?m)^ *4  \+ dead letters: exhausted`,
		`(?m)^ *2945  receipts sent`,
		`\): 2 starts, 1 charge`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("the output has no %q", want)
		}
	}
	if t.Failed() {
		t.Logf("output:\n%s", out)
	}
}

func TestTheDemoTakesAFileOfTheUsers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "orders.jsonl")
	lines := "{\"order_id\":\"1\",\"cents\":5}\n\n{\"order_id\":\"1\",\"cents\":5}\n{\"order_id\":\"2\",\"account\":\"unknown-x\",\"cents\":5}\r\n{\"order_id\":\"3\",\"cents\":7}"
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := build(t)
	demo := func() (string, error) {
		out, err := exec.CommandContext(t.Context(), binary, "-orders", file, "-dir", filepath.Join(dir, "demo")).CombinedOutput()
		return string(out), err
	}
	out, err := demo()
	if err != nil || !strings.Contains(out, "line 2 is no order: empty line") || !strings.Contains(out, "2  + charged") {
		t.Errorf("%v; want line 2 reported and two charges\n%s", err, out)
	}
	if out, err := demo(); err == nil || !strings.Contains(out, "earlier run") {
		t.Errorf("%v; a second demo in the same folder must be refused with a sentence\n%s", err, out)
	}
}

func TestReadOrders(t *testing.T) {
	t.Parallel()
	input := strings.Join([]string{
		`{"order_id": "1", "account": "a", "cents": 1}`,
		`{"order_id": "2", "cents": 0}`,
		`{"order_id": "3", "cents": 1} {}`,
		`{"order_id": "4", "price": 1}`,
		``,
		strings.Repeat(" ", 1<<20) + `{"order_id": "6", "cents": 1}`,
	}, "\n")
	orders, bad, err := readOrders(strings.NewReader(input))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, o := range orders {
		ids = append(ids, o.GetOrderId())
	}
	if diff := cmp.Diff([]string{"1", "6"}, ids); diff != "" {
		t.Errorf("orders (-want +got):\n%s", diff)
	}
	var lines []int
	for _, b := range bad {
		lines = append(lines, b.line)
	}
	if diff := cmp.Diff([]int{2, 3, 4, 5}, lines); diff != "" {
		t.Errorf("malformed lines (-want +got):\n%s", diff)
	}
}
