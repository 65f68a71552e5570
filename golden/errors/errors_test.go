// Package errors_test holds schemas and the exact words with which they are
// refused. Each archive is a module: its files, then what is printed.
package errors_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/backstage-go/backstage/codegen/compile"
)

var update = flag.Bool("update", false, "rewrite what is printed")

const wantFile = "want"

func TestSchemasAreRefusedInTheseWords(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(name, ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := refusal(t, archive)
			if *update {
				rewrite(t, name, archive, got)
			}
			if diff := cmp.Diff(wanted(archive), got); diff != "" {
				t.Errorf("%s (-want +got); rewrite it with: go test ./golden/errors -update\n%s", name, diff)
			}
		})
	}
}

// refusal returns what is printed about a module.
func refusal(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "go.mod", "module example.com/shop\n\ngo 1.25.0\n")
	for _, f := range archive.Files {
		if f.Name != wantFile {
			write(t, dir, f.Name, string(f.Data))
		}
	}
	project, err := compile.Load(t.Context(), options(dir, archive))
	if err != nil {
		return strings.ReplaceAll(err.Error(), dir, "$DIR") + "\n"
	}
	var b strings.Builder
	if err := project.Report(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := project.Generate(); (err == nil) != (project.Diagnostics.Errors() == nil) {
		t.Errorf("Generate returned %v beside these diagnostics:\n%s", err, b.String())
	}
	return b.String()
}

// options reads flags from the line "flags: -root proto -I third_party" of an
// archive's comment.
func options(dir string, archive *txtar.Archive) compile.Options {
	o := compile.Options{Dir: dir}
	for line := range strings.SplitSeq(string(archive.Comment), "\n") {
		flags, ok := strings.CutPrefix(line, "flags: ")
		if !ok {
			continue
		}
		words := strings.Fields(flags)
		for i := 0; i+1 < len(words); i += 2 {
			switch words[i] {
			case "-root":
				o.Roots = append(o.Roots, words[i+1])
			case "-I":
				o.Imports = append(o.Imports, words[i+1])
			case "-dir":
				o.Dir = filepath.Join(dir, words[i+1])
			}
		}
	}
	return o
}

func wanted(archive *txtar.Archive) string {
	for _, f := range archive.Files {
		if f.Name == wantFile {
			return string(f.Data)
		}
	}
	return ""
}

func rewrite(t *testing.T, name string, archive *txtar.Archive, got string) {
	t.Helper()
	kept := archive.Files[:0]
	for _, f := range archive.Files {
		if f.Name != wantFile {
			kept = append(kept, f)
		}
	}
	archive.Files = append(kept, txtar.File{Name: wantFile, Data: []byte(got)})
	if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	disk := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(disk), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(disk, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
