package compile_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/backstage-go/backstage/codegen/compile"
)

var update = flag.Bool("update", false, "rewrite the Go of Backstage's own schemas")

// The generator links the Go of the options that it is about to generate. It
// links what is committed, so a change of options.proto needs two runs at most:
// one to write the new Go, one to see that nothing changes any more.
func TestTheGoOfOurOwnSchemasIsUpToDate(t *testing.T) {
	t.Parallel()
	project, err := compile.Load(t.Context(), compile.Options{Dir: "../..", Roots: []string{"schema"}})
	if err != nil {
		t.Fatal(err)
	}
	files, err := project.GenerateMessages()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 {
		t.Fatalf("%d files, want those of options.proto and record.proto", len(files))
	}
	for _, f := range files {
		disk := filepath.Join("..", "..", filepath.FromSlash(f.Name))
		if *update {
			if err := os.WriteFile(disk, []byte(f.Content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		committed, err := os.ReadFile(disk)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.ReplaceAll(string(committed), "\r\n", "\n"), f.Content); diff != "" {
			t.Errorf("%s (-committed +generated); rewrite it with: go test ./codegen/compile -update\n%s", f.Name, diff)
		}
	}
}
