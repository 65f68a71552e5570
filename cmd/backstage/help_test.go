package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	for _, cmd := range commands() {
		t.Run(cmd.name, func(t *testing.T) {
			t.Parallel()
			help := backstage(t, t.TempDir(), "help", cmd.name)
			if help.code != exitOK || help.stderr != "" {
				t.Errorf("help ended with %d and %q on standard error", help.code, help.stderr)
			}
			for _, want := range []string{"usage: backstage " + cmd.name, "\nExamples:\n", "\nExit codes:\n  0  "} {
				if !strings.Contains(help.stdout, want) {
					t.Errorf("help has no %q:\n%s", want, help.stdout)
				}
			}
			set := cmd.flagSet()
			cmd.flags(set)
			set.VisitAll(func(f *flag.Flag) {
				if f.Usage == "" || !strings.Contains(help.stdout, "\n  -"+f.Name) {
					t.Errorf("flag -%s is not explained:\n%s", f.Name, help.stdout)
				}
			})
			for line := range strings.Lines(help.stdout) {
				if len([]rune(line)) > 100 || strings.HasSuffix(line, " \n") {
					t.Errorf("a line too long for a terminal, or with white space at its end: %q", line)
				}
			}
			if flagged := plain(cmd.name, "-h"); flagged != help {
				t.Errorf("-h does not print what help prints:\n%+v", flagged)
			}
		})
	}
}

// plain runs a command where nothing of it depends on the folder.
func plain(words ...string) result {
	var stdout, stderr bytes.Buffer
	code := run(words, strings.NewReader(""), &stdout, &stderr)
	return result{stdout.String(), stderr.String(), code}
}

func TestTheOverviewNamesEveryCommand(t *testing.T) {
	t.Parallel()
	help, none := plain("help"), plain()
	if help.code != exitOK || none.code != exitUsage || none.stderr != help.stdout || none.stdout != "" {
		t.Errorf("without a command the overview goes to standard error, with exit code %d; got %+v and %+v", exitUsage, none, help)
	}
	for _, cmd := range commands() {
		if !strings.Contains(help.stdout, "\n  "+cmd.name+" ") {
			t.Errorf("no %s in the overview:\n%s", cmd.name, help.stdout)
		}
	}
}

// What the pages say is what the generator takes and refuses: each example stands
// in a schema here.
func TestTopicsSayWhatSchemasTake(t *testing.T) {
	t.Parallel()
	for _, topic := range topics() {
		got := plain("help", topic.name)
		if got.code != exitOK || got.stderr != "" || !strings.Contains(plain("help").stdout, "\n  "+topic.name+" ") {
			t.Errorf("help %s: %+v", topic.name, got)
		}
		for line := range strings.Lines(got.stdout) {
			if len([]rune(line)) > 90 || strings.HasSuffix(line, " \n") {
				t.Errorf("a line too long for a terminal, or with white space at its end: %q", line)
			}
		}
		examples := regexp.MustCompile(`([a-z_]+): ("[^"]+")`).FindAllStringSubmatch(got.stdout, -1)
		if len(examples) < 4 {
			t.Fatalf("help %s has %d examples", topic.name, len(examples))
		}
		dir := t.TempDir()
		put(t, dir, "go.mod", "module example.com/shop\n")
		put(t, dir, "proto/shop/v1/shop_tasks.proto", schemaWith(examples))
		if got := backstage(t, dir, "generate"); got.code != exitOK || got.stderr != "" {
			t.Errorf("the examples of help %s: %+v", topic.name, got)
		}
	}
}

// schemaWith is a schema with a task for each option.
func schemaWith(options [][]string) string {
	var b strings.Builder
	b.WriteString("syntax = \"proto3\";\npackage shop.v1;\nimport \"backstage/v1/options.proto\";\nimport \"google/protobuf/empty.proto\";\n" +
		"option go_package = \"example.com/shop/gen/shop/v1;shopv1\";\nservice ShopTasks {\n")
	for i, o := range options {
		more := map[string]string{"dedupe": ` dedupe_for: "1h"`, "dedupe_for": ` dedupe: "{order_id}"`}[o[1]]
		fmt.Fprintf(&b, "  rpc T%d(Order) returns (google.protobuf.Empty) {\n    option (backstage.v1.task) = {%s: %s%s};\n  }\n", i, o[1], o[2], more)
	}
	b.WriteString("}\nmessage Order {\n  string order_id = 1;\n  string customer_id = 2;\n  string tenant = 3;\n" +
		"  message Customer { string id = 1; }\n  Customer customer = 4;\n}\n")
	return b.String()
}

func TestTheVersionIsOneLine(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"version", "--version"} {
		got := plain(name)
		if got.code != exitOK || !strings.HasPrefix(got.stdout, "backstage ") || strings.Count(got.stdout, "\n") != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestFlagsStandBeforeAndBehindOperands(t *testing.T) {
	t.Parallel()
	set := flag.NewFlagSet("", flag.ContinueOnError)
	a, b := set.Bool("a", false, ""), set.String("b", "", "")
	operands, err := parse(set, []string{"-a", "x", "-b", "v", "y", "--", "-z"})
	if err != nil || !*a || *b != "v" || strings.Join(operands, " ") != "x y -z" {
		t.Errorf("a %t, b %q, operands %q, error %v", *a, *b, operands, err)
	}
}

func TestTheNameDecidesWhetherItIsAPlugin(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"backstage":                                    false,
		filepath.Join("bin", "backstage.exe"):          false,
		filepath.Join("bin", "protoc-gen-backstage"):   true,
		"protoc-gen-backstage.exe":                     true,
		filepath.Join("protoc-gen-tools", "backstage"): false,
	} {
		if got := isPlugin(name); got != want {
			t.Errorf("isPlugin(%q) = %t", name, got)
		}
	}
}

// The promise of doc.go: one document, and no list that is null.
func TestJSONIsOneDocumentWithoutNull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "go.mod", "module example.com/shop\n")
	put(t, dir, "proto/shop/v1/shop.proto", "syntax = \"proto3\";\npackage shop.v1;\noption go_package = \"example.com/shop/gen\";\n")
	for _, name := range []string{"generate", "vet", "tasks", "graph", "version"} {
		got := backstage(t, dir, name, "-o", "json")
		decoder := json.NewDecoder(strings.NewReader(got.stdout))
		var document map[string]any
		if err := decoder.Decode(&document); err != nil || decoder.More() {
			t.Errorf("%s: %v, more: %t:\n%s", name, err, decoder.More(), got.stdout)
		}
		if strings.Contains(got.stdout, "null") || got.code != exitOK || got.stderr != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
