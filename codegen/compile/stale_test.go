package compile_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/backstage-go/backstage/codegen/compile"
)

// run generates and writes, and returns what it did.
func run(t *testing.T, o compile.Options) compile.Changes {
	t.Helper()
	project := mustLoad(t, o)
	changes, err := project.Write(mustGenerate(t, project))
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		if runtime.GOOS == "windows" {
			t.Skip("links need a privilege there")
		}
		t.Fatal(err)
	}
}

func TestWhatIsGeneratedThroughALinkIsNotTakenForStale(t *testing.T) {
	t.Parallel()
	dir := twoSchemas(t)
	if err := os.Mkdir(filepath.Join(dir, "generated"), 0o755); err != nil {
		t.Fatal(err)
	}
	link(t, "generated", filepath.Join(dir, "gen"))
	if first := run(t, compile.Options{Dir: dir}); len(first.Written) != 4 {
		t.Errorf("the first run wrote %v, want 4 files", first.Written)
	}
	if diff := cmp.Diff(compile.Changes{}, run(t, compile.Options{Dir: dir})); diff != "" {
		t.Errorf("the second run (-want +got):\n%s", diff)
	}
}

func TestALinkToAModuleOrARootIsWhatItLeadsTo(t *testing.T) {
	t.Parallel()
	dir := inModule(t, map[string]string{"_schemas/a/v1/a_tasks.proto": schemaOf("a.v1", "ATasks")})
	link(t, "_schemas", filepath.Join(dir, "proto"))
	module := filepath.Join(t.TempDir(), "module")
	link(t, dir, module)
	want := []string{"gen/a/v1/a_tasks.pb.go", "gen/a/v1/atasks/tasks.backstage.go"}
	if diff := cmp.Diff(want, run(t, compile.Options{Dir: module, Roots: []string{"proto"}}).Written); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	put(t, dir, "api/b/v1/b_tasks.proto", schemaOf("b.v1", "BTasks"))
	want = []string{"gen/b/v1/b_tasks.pb.go", "gen/b/v1/btasks/tasks.backstage.go"}
	if diff := cmp.Diff(want, run(t, compile.Options{Dir: module}).Written); diff != "" {
		t.Errorf("written without roots (-want +got):\n%s", diff)
	}
}

// A module may hold several projects, each with its own configuration.
func TestWhatAnotherProjectOfTheModuleGeneratesIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, config := range []struct{ name, text string }{
		{"backstage.yaml", "roots: [proto]\n"},
		{"buf.yaml", "version: v2\nmodules:\n  - path: proto\n"},
		{"buf.work.yaml", "version: v1\ndirectories: [proto]\n"},
	} {
		t.Run(config.name, func(t *testing.T) {
			t.Parallel()
			dir := inModule(t, map[string]string{
				config.name:                             config.text,
				"proto/a/v1/a_tasks.proto":              schemaOf("a.v1", "ATasks"),
				"cmd/worker/" + config.name:             config.text,
				"cmd/worker/proto/b/v1/b_tasks.proto":   schemaOf("b.v1", "BTasks"),
				"cmd/worker/proto/b/v1/old_tasks.proto": strings.ReplaceAll(schemaOf("b.v1", "OldTasks"), "Request", "Old"),
			})
			worker := filepath.Join(dir, "cmd", "worker")
			run(t, compile.Options{Dir: worker})
			if changes := run(t, compile.Options{Dir: dir}); len(changes.Deleted)+len(changes.Doubtful) > 0 {
				t.Errorf("the other project's run: %+v, want nothing deleted", changes)
			}
			if err := os.Remove(filepath.Join(worker, "proto/b/v1/old_tasks.proto")); err != nil {
				t.Fatal(err)
			}
			want := []string{"gen/b/v1/old_tasks.pb.go", "gen/b/v1/oldtasks/tasks.backstage.go"}
			if diff := cmp.Diff(want, run(t, compile.Options{Dir: worker}).Deleted); diff != "" {
				t.Errorf("deleted by its own run (-want +got):\n%s", diff)
			}
		})
	}
}
