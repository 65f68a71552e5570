package compile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/backstage-go/backstage/codegen/compile"
)

// Buf follows links and the go tool does not, so somebody would wait for Go in
// vain, while imports go through the link.
func TestSchemasBehindALinkAreReported(t *testing.T) {
	t.Parallel()
	dir := inModule(t, map[string]string{
		"api/a/v1/a_tasks.proto":    schemaOf("a.v1", "ATasks"),
		"shared/v1/b_tasks.proto":   schemaOf("shared.v1", "BTasks"),
		"elsewhere/v1/README":       "no schema",
		"api/alias/of/v1/own.proto": messageOf("alias.of.v1", "example.com/shop/gen/own"),
	})
	for name, target := range map[string]string{"shared": "shared", "empty": "elsewhere", "same": "api/alias", "nowhere": "nowhere"} {
		link(t, filepath.Join(dir, filepath.FromSlash(target)), filepath.Join(dir, "api", name))
	}
	project := mustLoad(t, compile.Options{Dir: dir, Roots: []string{"api"}})
	var places []string
	for _, d := range project.Diagnostics.Warnings() {
		places = append(places, d.Pos.File)
		if !strings.Contains(d.Message, "symbolic link") {
			t.Errorf("a warning about something else: %v", d)
		}
	}
	if diff := cmp.Diff([]string{filepath.Join("api", "shared")}, places); diff != "" {
		t.Errorf("links that are warned about (-want +got):\n%s", diff)
	}
	if names := fileNames(mustGenerate(t, project)); slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, "shared") }) {
		t.Errorf("generated %q, want nothing of what is behind the link", names)
	}
	if err := os.Remove(filepath.Join(dir, "api", "shared")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "shared"), filepath.Join(dir, "api", "shared")); err != nil {
		t.Fatal(err)
	}
	moved := mustLoad(t, compile.Options{Dir: dir, Roots: []string{"api"}})
	if warnings := moved.Diagnostics.Warnings(); len(warnings) != 0 || !slices.Contains(moved.Schemas, "shared/v1/b_tasks.proto") {
		t.Errorf("with the folder in the link's place: schemas %q, warnings %v", moved.Schemas, warnings)
	}
}

func TestAModuleWithSchemasBehindALinkAloneIsToldHowToNameIt(t *testing.T) {
	t.Parallel()
	dir, elsewhere := inModule(t, nil), t.TempDir()
	put(t, elsewhere, "a/v1/a_tasks.proto", schemaOf("a.v1", "ATasks"))
	link(t, elsewhere, filepath.Join(dir, "proto"))
	_, err := compile.Load(t.Context(), compile.Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "-root proto") {
		t.Fatalf("Load returned %v, want an error that names the link", err)
	}
	mustLoad(t, compile.Options{Dir: dir, Roots: []string{"proto"}})
}
