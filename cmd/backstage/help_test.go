package main

import (
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
		t.Run(cmd.Name, func(t *testing.T) {
			t.Parallel()
			help := backstage(t, t.TempDir(), "help", cmd.Name)
			if help.Code != exitOK || help.Stderr != "" {
				t.Errorf("help ended with %d and %q on standard error", help.Code, help.Stderr)
			}
			for _, want := range []string{"usage: backstage " + cmd.Name, "\nExamples:\n", "\nExit codes:\n  0  "} {
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
			for line := range strings.Lines(help.Stdout) {
				if len([]rune(line)) > 100 || strings.HasSuffix(line, " \n") {
					t.Errorf("a line too long for a terminal, or with white space at its end: %q", line)
				}
			}
			if flagged := plain(cmd.Name, "-h"); flagged != help {
				t.Errorf("-h does not print what help prints:\n%+v", flagged)
			}
		})
	}
}

func TestTheOverviewNamesEveryCommand(t *testing.T) {
	t.Parallel()
	help, none := plain("help"), plain()
	if help.Code != exitOK || none.Code != exitUsage || none.Stderr != help.Stdout || none.Stdout != "" {
		t.Errorf("without a command the overview goes to standard error, with exit code %d; got %+v and %+v", exitUsage, none, help)
	}
	for _, cmd := range commands() {
		if !strings.Contains(help.Stdout, "\n  "+cmd.Name+" ") {
			t.Errorf("no %s in the overview:\n%s", cmd.Name, help.Stdout)
		}
	}
}

// What the pages say is what the generator takes and refuses: each example stands
// in a schema here.
func TestTopicsSayWhatSchemasTake(t *testing.T) {
	t.Parallel()
	for _, topic := range topics() {
		got := plain("help", topic.Name)
		if got.Code != exitOK || got.Stderr != "" || !strings.Contains(plain("help").Stdout, "\n  "+topic.Name+" ") {
			t.Errorf("help %s: %+v", topic.Name, got)
		}
		for line := range strings.Lines(got.Stdout) {
			if len([]rune(line)) > 90 || strings.HasSuffix(line, " \n") {
				t.Errorf("a line too long for a terminal, or with white space at its end: %q", line)
			}
		}
		examples := regexp.MustCompile(`([a-z_]+): ("[^"]+")`).FindAllStringSubmatch(got.Stdout, -1)
		if len(examples) < 4 {
			t.Fatalf("help %s has %d examples", topic.Name, len(examples))
		}
		dir := t.TempDir()
		put(t, dir, "go.mod", "module example.com/shop\n")
		put(t, dir, "proto/shop/v1/shop_tasks.proto", schemaWith(examples))
		if got := backstage(t, dir, "generate"); got.Code != exitOK || got.Stderr != "" {
			t.Errorf("the examples of help %s: %+v", topic.Name, got)
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
		if got.Code != exitOK || !strings.HasPrefix(got.Stdout, "backstage ") || strings.Count(got.Stdout, "\n") != 1 {
			t.Errorf("%s: %+v", name, got)
		}
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
		decoder := json.NewDecoder(strings.NewReader(got.Stdout))
		var document map[string]any
		if err := decoder.Decode(&document); err != nil || decoder.More() {
			t.Errorf("%s: %v, more: %t:\n%s", name, err, decoder.More(), got.Stdout)
		}
		if strings.Contains(got.Stdout, "null") || got.Code != exitOK || got.Stderr != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
