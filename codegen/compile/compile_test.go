package compile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/backstage-go/backstage/codegen/compile"
)

const taskSchema = `syntax = "proto3";

package %[1]s;

import "backstage/v1/options.proto";
import "google/protobuf/empty.proto";

option go_package = "example.com/shop/gen/%[2]s";

service %[3]s {
  option (backstage.v1.defaults) = {};

  rpc Run(Request) returns (google.protobuf.Empty);
}

message Request {
  string id = 1;
}
`

// schemaOf is a schema with one task service.
func schemaOf(pkg, service string) string {
	return fmt.Sprintf(taskSchema, pkg, strings.ReplaceAll(pkg, ".", "/"), service)
}

// messageOf is a schema with a message alone.
func messageOf(pkg, goPackage string) string {
	return fmt.Sprintf("syntax = \"proto3\";\npackage %s;\noption go_package = %q;\nmessage M {}\n", pkg, goPackage)
}

// inModule writes a module example.com/shop into a folder of its own.
func inModule(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, "go.mod", "module example.com/shop\n\ngo 1.25.0\n")
	for name, text := range files {
		put(t, dir, name, text)
	}
	return dir
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	disk := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(disk), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(disk, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustLoad(t testing.TB, o compile.Options) *compile.Project {
	t.Helper()
	project, err := compile.Load(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if errs := project.Diagnostics.Errors(); errs != nil {
		t.Fatal(errs)
	}
	return project
}

func mustGenerate(t testing.TB, project *compile.Project) []compile.File {
	t.Helper()
	files, err := project.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func fileNames(files []compile.File) []string {
	var out []string
	for _, f := range files {
		out = append(out, f.Name)
	}
	slices.Sort(out)
	return out
}

func TestRootsAreTakenFromTheFirstThatSays(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"flagged/a/v1/a.proto":    messageOf("a.v1", "example.com/shop/a"),
		"configured/b/v1/b.proto": messageOf("b.v1", "example.com/shop/b"),
		"bufs/c/v1/c.proto":       messageOf("c.v1", "example.com/shop/c"),
		"inferred/d/v1/d.proto":   messageOf("d.v1", "example.com/shop/d"),
		"backstage.yaml":          "roots: [configured]\n",
		"buf.yaml":                "version: v2\nmodules:\n  - path: bufs\n    excludes: [bufs/x]\n",
		"bufs/x/v1/x.proto":       "broken",
	}
	for _, test := range []struct {
		name   string
		roots  []string
		remove []string
		want   []string
	}{
		{"flag", []string{"flagged"}, nil, []string{"a/v1/a.proto"}},
		{"backstage.yaml", nil, nil, []string{"b/v1/b.proto"}},
		{"buf.yaml", nil, []string{"backstage.yaml"}, []string{"c/v1/c.proto"}},
		{"packages", nil, []string{"backstage.yaml", "buf.yaml", "bufs/x/v1/x.proto"}, []string{"a/v1/a.proto", "b/v1/b.proto", "c/v1/c.proto", "d/v1/d.proto"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := inModule(t, files)
			for _, name := range test.remove {
				if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
					t.Fatal(err)
				}
			}
			got := mustLoad(t, compile.Options{Dir: dir, Roots: test.roots}).Schemas
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("schemas (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBufConfigurationsOfAllVersionsAreRead(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"v1 in the root":   {"buf.yaml": "version: v1\n", "a/v1/a.proto": messageOf("a.v1", "example.com/shop/a")},
		"v1beta1":          {"buf.yaml": "version: v1beta1\nbuild:\n  roots: [proto]\n  excludes: [old]\n", "proto/a/v1/a.proto": messageOf("a.v1", "example.com/shop/a"), "proto/old/x.proto": "broken"},
		"v2 of the root":   {"buf.yaml": "version: v2\n", "a/v1/a.proto": messageOf("a.v1", "example.com/shop/a")},
		"v2 with a module": {"buf.yaml": "version: v2\nmodules:\n  - path: proto\n", "proto/a/v1/a.proto": messageOf("a.v1", "example.com/shop/a")},
		"v2 with includes": {"buf.yaml": "version: v2\nmodules:\n  - path: proto\n    includes: [proto/a]\n  - path: proto\n    includes: [proto/none]\n", "proto/a/v1/a.proto": messageOf("a.v1", "example.com/shop/a"), "proto/b/x.proto": "broken"},
		"v1 with excludes": {"buf.yaml": "version: v1\nbuild:\n  excludes: [b/old, c/]\n", "a/v1/a.proto": messageOf("a.v1", "example.com/shop/a"), "b/old/x.proto": "broken", "c/x.proto": "broken"},
		"a workspace whose modules have excludes": {"buf.work.yaml": "version: v1\ndirectories: [proto, other]\n", "proto/buf.yaml": "version: v1\nbuild:\n  excludes: [old]\n",
			"proto/a/v1/a.proto": messageOf("a.v1", "example.com/shop/a"), "proto/old/x.proto": "broken", "other/readme.txt": "no buf.yaml here"},
		"a workspace of v1": {"buf.work.yaml": "version: v1\ndirectories: [proto]\n", "proto/buf.yaml": "version: v1\n", "proto/a/v1/a.proto": messageOf("a.v1", "example.com/shop/a")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := mustLoad(t, compile.Options{Dir: inModule(t, files)}).Schemas
			if diff := cmp.Diff([]string{"a/v1/a.proto"}, got); diff != "" {
				t.Errorf("schemas (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABufModuleThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	for _, files := range []map[string]string{
		{"buf.yaml": "version: v2\nmodules:\n  - path: nowhere\n"},
		{"buf.work.yaml": "version: v1\ndirectories: [nowhere]\n"},
	} {
		_, err := compile.Load(t.Context(), compile.Options{Dir: inModule(t, files)})
		if want := "buf's configuration names the folder nowhere, which is not there"; err == nil || err.Error() != want {
			t.Errorf("Load returned %v, want %q", err, want)
		}
	}
}

func TestFoldersOfOthersAreSkipped(t *testing.T) {
	t.Parallel()
	files := map[string]string{"proto/a/v1/a.proto": messageOf("a.v1", "example.com/shop/a")}
	for _, dir := range []string{"vendor/x", "testdata", "proto/testdata", ".git", ".hidden/x", "_old", "node_modules/x"} {
		files[dir+"/x.proto"] = "broken"
	}
	files["nested/go.mod"] = "module example.com/nested\n"
	files["nested/x.proto"] = "broken"
	project := mustLoad(t, compile.Options{Dir: inModule(t, files)})
	if diff := cmp.Diff([]string{"a/v1/a.proto"}, project.Schemas); diff != "" {
		t.Errorf("schemas (-want +got):\n%s", diff)
	}
}

func TestNothingIsGeneratedForImports(t *testing.T) {
	t.Parallel()
	dir := inModule(t, map[string]string{
		"backstage.yaml":             "imports: [third_party]\n",
		"third_party/ext/v1/e.proto": messageOf("ext.v1", "example.org/ext"),
		"proto/a/v1/a.proto":         strings.Replace(messageOf("a.v1", "example.com/shop/a"), "option", "import \"ext/v1/e.proto\";\noption", 1) + "message N { ext.v1.M m = 1; }\n",
	})
	if diff := cmp.Diff([]string{"a/a.pb.go"}, fileNames(mustGenerate(t, mustLoad(t, compile.Options{Dir: dir})))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestImportsAreFoundInGoModules(t *testing.T) {
	t.Parallel()
	dir := inModule(t, map[string]string{
		"proto/a/v1/a.proto":                   strings.Replace(messageOf("a.v1", "example.com/shop/a"), "option", "import \"ext/v1/e.proto\";\noption", 1) + "message N { ext.v1.M m = 1; }\n",
		"third_party/ext/go.mod":               "module example.org/ext\n",
		"third_party/ext/proto/ext/v1/e.proto": messageOf("ext.v1", "example.org/ext/gen"),
	})
	put(t, dir, "go.mod", "module example.com/shop\n\ngo 1.25.0\n\nrequire example.org/ext v0.0.0\n\nreplace example.org/ext => ./third_party/ext\n")
	find := func(what string) {
		t.Helper()
		project := mustLoad(t, compile.Options{Dir: dir, Roots: []string{"proto"}, Imports: []string{"example.org/ext/proto"}})
		if diff := cmp.Diff([]string{"a/a.pb.go"}, fileNames(mustGenerate(t, project))); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", what, diff)
		}
	}
	find("a module")
	put(t, dir, "vendor/modules.txt", "# example.org/ext v0.0.0 => ./third_party/ext\n## explicit\n")
	find("a module beside vendor")
}

func TestCopiesOfTheOptionsAtTheirOwnPathGenerateNothing(t *testing.T) {
	t.Parallel()
	options, err := os.ReadFile("../../schema/backstage/v1/options.proto")
	if err != nil {
		t.Fatal(err)
	}
	dir := inModule(t, map[string]string{
		"proto/backstage/v1/options.proto": string(options),
		"proto/a/v1/a_tasks.proto":         schemaOf("a.v1", "ATasks"),
	})
	want := []string{"gen/a/v1/a_tasks.pb.go", "gen/a/v1/atasks/tasks.backstage.go"}
	if diff := cmp.Diff(want, fileNames(mustGenerate(t, mustLoad(t, compile.Options{Dir: dir})))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestOnlyChangedFilesAreWritten(t *testing.T) {
	t.Parallel()
	dir := inModule(t, map[string]string{
		"proto/a/v1/a_tasks.proto": schemaOf("a.v1", "ATasks"),
		"proto/b/v1/b_tasks.proto": schemaOf("b.v1", "BTasks"),
	})
	write := func() compile.Changes {
		t.Helper()
		project := mustLoad(t, compile.Options{Dir: dir})
		changes, err := project.Write(mustGenerate(t, project))
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	first := []string{"gen/a/v1/a_tasks.pb.go", "gen/a/v1/atasks/tasks.backstage.go", "gen/b/v1/b_tasks.pb.go", "gen/b/v1/btasks/tasks.backstage.go"}
	if diff := cmp.Diff(compile.Changes{Written: first}, write()); diff != "" {
		t.Errorf("the first run (-want +got):\n%s", diff)
	}
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	kept := filepath.Join(dir, filepath.FromSlash(first[1]))
	if err := os.Chtimes(kept, old, old); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(compile.Changes{}, write()); diff != "" {
		t.Errorf("a run without changes (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(kept); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("a file that did not change was written again: %v, %v", info, err)
	}
	put(t, dir, "proto/b/v1/b_tasks.proto", strings.Replace(schemaOf("b.v1", "BTasks"), "rpc Run", "// Changed.\n  rpc Run", 1))
	if diff := cmp.Diff(compile.Changes{Written: first[3:]}, write()); diff != "" {
		t.Errorf("a run with a changed comment (-want +got):\n%s", diff)
	}
}

func TestStaleTaskPackagesAreDeletedAndNothingElse(t *testing.T) {
	t.Parallel()
	const generated = "// Code generated by protoc-gen-backstage. DO NOT EDIT.\n\npackage old\n"
	dir := inModule(t, map[string]string{
		"proto/a/v1/a_tasks.proto":                 schemaOf("a.v1", "ATasks"),
		"gen/a/v1/oldtasks/tasks.backstage.go":     generated,
		"gen/gone/v1/gonetasks/tasks.backstage.go": generated,
		"gen/a/v1/mine/tasks.backstage.go":         "// By hand.\npackage mine\n",
		"gen/a/v1/kept/tasks.backstage.go":         generated,
		"gen/a/v1/kept/hand.go":                    "package kept\n",
		"testdata/oldtasks/tasks.backstage.go":     generated,
		"nested/go.mod":                            "module example.com/nested\n",
		"nested/oldtasks/tasks.backstage.go":       generated,
	})
	// With roots given, other schemas may exist that this run does not see.
	project := mustLoad(t, compile.Options{Dir: dir, Roots: []string{"proto"}})
	left, err := project.Leftovers(mustGenerate(t, project))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"gen/a/v1/kept/tasks.backstage.go", "gen/a/v1/oldtasks/tasks.backstage.go"}, left.Stale); diff != "" {
		t.Errorf("stale with roots given (-want +got):\n%s", diff)
	}
	project = mustLoad(t, compile.Options{Dir: dir})
	changes, err := project.Write(mustGenerate(t, project))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"gen/a/v1/kept/tasks.backstage.go", "gen/a/v1/oldtasks/tasks.backstage.go", "gen/gone/v1/gonetasks/tasks.backstage.go"}
	if diff := cmp.Diff(want, changes.Deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	for _, name := range []string{"gen/a/v1/mine/tasks.backstage.go", "gen/a/v1/kept/hand.go", "testdata/oldtasks/tasks.backstage.go", "nested/oldtasks/tasks.backstage.go"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "gen/a/v1/oldtasks")); err == nil {
		t.Error("the empty folder gen/a/v1/oldtasks is left")
	}
}

func TestDescriptorSetsAreAnInput(t *testing.T) {
	t.Parallel()
	dir := inModule(t, map[string]string{"proto/a/v1/a_tasks.proto": schemaOf("a.v1", "ATasks")})
	project := mustLoad(t, compile.Options{Dir: dir})
	set := &descriptorpb.FileDescriptorSet{File: proto.CloneOf(project.Request()).ProtoFile}
	writeSet(t, filepath.Join(dir, "image.binpb"), set)
	fromSet := mustGenerate(t, mustLoad(t, compile.Options{Dir: dir, DescriptorSet: "image.binpb"}))
	if diff := cmp.Diff(mustGenerate(t, project), fromSet); diff != "" {
		t.Errorf("sources and descriptor set differ (-sources +set):\n%s", diff)
	}
	for _, f := range set.File {
		if f.GetName() == "a/v1/a_tasks.proto" {
			f.Syntax, f.Edition = proto.String("editions"), descriptorpb.Edition_EDITION_2024.Enum()
			// import option: the options are not needed at run time.
			f.Dependency = []string{"google/protobuf/empty.proto"}
			f.OptionDependency = []string{"backstage/v1/options.proto"}
		}
	}
	writeSet(t, filepath.Join(dir, "image.binpb"), set)
	if files := mustGenerate(t, mustLoad(t, compile.Options{Dir: dir, DescriptorSet: "image.binpb"})); len(files) != 2 {
		t.Errorf("edition 2024 in a descriptor set gives %v", fileNames(files))
	}
}

func writeSet(t *testing.T, name string, set *descriptorpb.FileDescriptorSet) {
	t.Helper()
	b, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCommentsOfDescriptorSetsAreNotObeyedEither(t *testing.T) {
	t.Parallel()
	dir := inModule(t, map[string]string{"proto/a/v1/a_tasks.proto": "// A comment.\n" + schemaOf("a.v1", "ATasks")})
	set := &descriptorpb.FileDescriptorSet{File: proto.CloneOf(mustLoad(t, compile.Options{Dir: dir}).Request()).ProtoFile}
	for _, loc := range set.File[len(set.File)-1].SourceCodeInfo.Location {
		if loc.LeadingComments != nil {
			loc.LeadingComments = proto.String("go:generate touch x\n go:embed is a word here,\nexport a verb and\nline a noun\n")
		}
	}
	writeSet(t, filepath.Join(dir, "image.binpb"), set)
	project, err := compile.Load(t.Context(), compile.Options{Dir: dir, DescriptorSet: "image.binpb"})
	if err != nil {
		t.Fatal(err)
	}
	want := "a/v1/a_tasks.proto:2:1: a comment that Go would take for a directive, \"go:generate\"; put other words in front of it"
	if got := project.Diagnostics.Error(); got != want {
		t.Errorf("diagnostics\n%s\nwant\n%s", got, want)
	}
}

func TestDescriptorSetsThatCannotBeUsedSaySo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set  *descriptorpb.FileDescriptorSet
		want string
	}{
		"an import left out": {&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{Name: proto.String("a.proto"), Dependency: []string{"b.proto"}}}}, "--include_imports"},
		"another module":     {&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{Name: proto.String("a.proto")}}}, "no schema whose go_package is in module example.com/shop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := inModule(t, nil)
			writeSet(t, filepath.Join(dir, "image.binpb"), test.set)
			_, err := compile.Load(t.Context(), compile.Options{Dir: dir, DescriptorSet: "image.binpb"})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Load returned %v, want %q", err, test.want)
			}
		})
	}
}

func TestOutsideOfAModuleTheErrorSaysHowToStartOne(t *testing.T) {
	t.Parallel()
	_, err := compile.Load(t.Context(), compile.Options{Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "go mod init") {
		t.Errorf("Load returned %v, want advice to run go mod init", err)
	}
}

func TestAProjectAnswersQuestionsAboutItsTasks(t *testing.T) {
	t.Parallel()
	dir := inModule(t, map[string]string{"proto/a/v1/a_tasks.proto": schemaOf("a.v1", "ATasks")})
	project := mustLoad(t, compile.Options{Dir: dir})
	tasks := project.Tasks.Tasks()
	if len(tasks) != 1 || tasks[0].Name != "a.v1.ATasks.Run" || tasks[0].Policy.Queue.Value != "default" || tasks[0].Policy.Queue.From.String() != "built-in" {
		t.Errorf("tasks are %+v", tasks)
	}
}

// protoc-gen-go changes the messages of the hybrid API while it writes them.
func TestAProjectGeneratesTheSameTwice(t *testing.T) {
	t.Parallel()
	hybrid := "edition = \"2023\";\npackage b.v1;\nimport \"google/protobuf/go_features.proto\";\n" +
		"option go_package = \"example.com/shop/gen/b/v1\";\noption features.(pb.go).api_level = API_HYBRID;\nmessage M { string id = 1; }\n"
	project := mustLoad(t, compile.Options{Dir: inModule(t, map[string]string{
		"proto/a/v1/a_tasks.proto": schemaOf("a.v1", "Tasks"),
		"proto/b/v1/b.proto":       hybrid,
	})})
	first := mustGenerate(t, project)
	if len(first) != 4 {
		t.Errorf("generated %q, want messages of both, b's twice, and a package of tasks", fileNames(first))
	}
	if diff := cmp.Diff(first, mustGenerate(t, project)); diff != "" {
		t.Errorf("(-first +second)\n%s", diff)
	}
}

// manySchemas is a module of n schemas, each with a task service whose task may
// be followed by that of the next.
func manySchemas(b *testing.B, n int) string {
	files := map[string]string{}
	for i := range n {
		pkg := fmt.Sprintf("p%d.v1", i)
		text := schemaOf(pkg, "Tasks")
		if i > 0 {
			before := fmt.Sprintf("p%d", i-1)
			text = strings.Replace(text, "import \"google", "import \""+before+"/v1/x_tasks.proto\";\nimport \"google", 1)
			text = strings.Replace(text, "Empty);", "Empty) {\n    option (backstage.v1.task) = {then: \""+before+".v1.Tasks.Run\" dedupe: \"{id}\" dedupe_for: \"1h\"};\n  }", 1)
		}
		files[fmt.Sprintf("proto/p%d/v1/x_tasks.proto", i)] = text
	}
	return inModule(b, files)
}

func BenchmarkGenerate300Schemas(b *testing.B) {
	dir := manySchemas(b, 300)
	for b.Loop() {
		project, err := compile.Load(b.Context(), compile.Options{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		files, err := project.Generate()
		if err != nil {
			b.Fatal(err)
		}
		if len(files) != 600 {
			b.Fatalf("%d files, want 600", len(files))
		}
	}
}
