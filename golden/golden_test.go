// Package golden_test holds the generated code in the folders below against its
// schemas in proto/: as a whole tree, through every way of running the generator,
// and by what must not compile.
package golden_test

import (
	"flag"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/backstage-go/backstage/codegen/compile"
)

// update rewrites the generated tree: go test ./golden -update.
var update = flag.Bool("update", false, "rewrite what is generated")

// load compiles the schemas of this folder.
func load(t *testing.T) *compile.Project {
	t.Helper()
	project, err := compile.Load(t.Context(), compile.Options{Roots: []string{"proto"}})
	if err != nil {
		t.Fatal(err)
	}
	if errs := project.Diagnostics.Errors(); errs != nil {
		var b strings.Builder
		if err := project.Report(&b); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("the golden schemas have errors:\n%s", b.String())
	}
	return project
}

func generate(t *testing.T, project *compile.Project) map[string]string {
	t.Helper()
	files, err := project.Generate()
	if err != nil {
		t.Fatal(err)
	}
	tree := map[string]string{}
	for _, f := range files {
		name, ok := strings.CutPrefix(f.Name, "golden/")
		if !ok {
			t.Fatalf("%s is generated outside of golden", f.Name)
		}
		tree[name] = f.Content
	}
	return tree
}

func TestSchemasGiveExactlyTheCommittedTree(t *testing.T) {
	t.Parallel()
	project := load(t)
	want := generate(t, project)
	if *update {
		rewrite(t, want)
	}
	if diff := cmp.Diff(committed(t), want); diff != "" {
		t.Errorf("generated code is not what is committed (-committed +generated); rewrite it with: go test ./golden -update\n%s", diff)
	}
}

func TestGeneratedCodeIsFormattedAndVetted(t *testing.T) {
	t.Parallel()
	for name, text := range only(committed(t), ".backstage.go") {
		formatted, err := format.Source([]byte(text))
		if err != nil || string(formatted) != text {
			t.Errorf("%s is not as gofmt writes it (%v)", name, err)
		}
	}
	for _, args := range [][]string{
		{"vet", "./..."},
		{"vet", "-tags", "protoopaque", "./keys/..."}, // how hybrid messages turn opaque
	} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Errorf("go %v: %v\n%s", args, err, out)
		}
	}
}

// committed reads the generated files of this folder.
func committed(t *testing.T) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (name == "peers" || name == "records") {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".pb.go") || strings.HasSuffix(name, ".backstage.go") {
			text, err := os.ReadFile(name)
			tree[name] = strings.ReplaceAll(string(text), "\r\n", "\n")
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func rewrite(t *testing.T, want map[string]string) {
	t.Helper()
	for name := range committed(t) {
		if _, ok := want[name]; !ok {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range want {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
