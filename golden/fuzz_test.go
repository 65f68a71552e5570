package golden_test

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/codegen/compile"
)

// names is what the fuzzer draws from: words of Go, names that are predeclared,
// that are generated, or that lose their shape on the way to Go.
func names() []string {
	return strings.Fields(`
		break case chan const continue default defer else fallthrough for func go goto
		if import interface map package range return select struct switch type var
		any append bool byte cap clear close comparable complex copy delete error
		false float64 imag int int32 iota len make max min new nil panic print
		println real recover rune string true uint64 uintptr init main
		Client client NewClient Handler handler Register register RegisterA A AJob
		ANext AName ATask a aTask Job Next Name Task Enqueue Receipt Needs Policy
		ProtoReflect backstage Backstage context Context time Time ctx in opts err n c next worker
		handle enqueuer emptypb Empty v1 v2 runtime proto reflect sync unsafe
		protoreflect protoimpl file_fuzz Reset String ProtoMessage
		Descriptor Marshal Unmarshal GetId get_id id Id _id X_id XId _ _a __ a_1 a1b
		_1 get_foo GetFoo Get_Foo FOOBar fooBar foo_bar Foo_Bar S3 x2y tasks Tasks
		tasks_tasks OrderTasks Order order_tasks M m M_N MN Outer Inner Outer_Inner
		message service rpc returns option stream oneof enum optional repeated
		required group extend extensions reserved to weak public syntax edition`)
}

// A draw picks names by the bytes of the fuzzer.
type draw struct {
	names []string
	bytes []byte
}

func (d *draw) name() string {
	if len(d.bytes) == 0 {
		return "M"
	}
	b := d.bytes[0]
	d.bytes = d.bytes[1:]
	return d.names[int(b)%len(d.names)]
}

func (d *draw) schema(comment string) string {
	text := ""
	for line := range strings.SplitSeq(comment, "\n") {
		text += "//" + line + "\n"
	}
	pkg, dir, goName := d.name(), d.name(), d.name()
	payloads := []string{d.name(), d.name(), d.name()}
	fields := []string{d.name(), d.name(), d.name()}
	var b strings.Builder
	fmt.Fprintf(&b, "%ssyntax = \"proto3\";\npackage fuzz.%s.v1;\nimport \"backstage/v1/options.proto\";\nimport \"google/protobuf/empty.proto\";\n", text, pkg)
	fmt.Fprintf(&b, "option go_package = \"example.com/shop/%s;%s\";\n", dir, goName)
	for range 2 {
		tasks := []string{d.name(), d.name(), d.name()}
		fmt.Fprintf(&b, "%sservice %s {\n  option (.backstage.v1.defaults) = {};\n", text, d.name())
		for i, task := range tasks {
			fmt.Fprintf(&b, "%s  rpc %s(.fuzz.%s.v1.%s) returns (.google.protobuf.Empty) {\n", text, task, pkg, payloads[i])
			fmt.Fprintf(&b, "    option (.backstage.v1.task) = {then: %q ordering_key: \"{%s}\"};\n  }\n", tasks[(i+1)%3], fields[i])
		}
		b.WriteString("}\n")
	}
	for _, payload := range payloads {
		fmt.Fprintf(&b, "%smessage %s {\n", text, payload)
		for i, field := range fields {
			fmt.Fprintf(&b, "%s  string %s = %d;\n", text, field, i+1)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func FuzzSchemasAreRefusedOrCompile(f *testing.F) {
	c := newChecker(f, runtime, module+"/schema/backstage/v1", "google.golang.org/protobuf/types/known/emptypb")
	f.Add([]byte("abcdefghijklmnopqrstuvwxyz0123456789"), " a comment")
	f.Add([]byte("the quick brown fox jumps over the lazy dog"), "go:generate touch x\nline x:1")
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, " */ /* \\ ` \" %s {{}} ä\u2028\ufeff")
	f.Add([]byte{200, 10, 30, 99, 98, 97, 140, 141, 142, 150, 151, 152, 60, 61, 62, 63, 64}, "\tDeprecated: x\n\n - list\n# Heading\r")
	for i := range byte(64) {
		f.Add([]byte{i * 3, i, i * 5, i + 70, i + 80, i + 90, i + 130, i + 131, i + 140, i * 7, i*7 + 1, i*7 + 2, i * 11, i * 13, i * 17, i*17 + 5, i * 19}, " Comment.\n buf:lint:ignore X")
	}
	f.Fuzz(func(t *testing.T, b []byte, comment string) {
		d := &draw{names: names(), bytes: b}
		compiles(t, c, d.schema(comment))
	})
}

// compiles checks that a schema is either refused with a place, or gives Go that
// type-checks, is formatted, and holds no directive.
func compiles(t *testing.T, c *checker, schema string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/shop\n")
	write(t, filepath.Join(dir, "proto", "fuzz", "v1", "fuzz_tasks.proto"), schema)
	project, err := compile.Load(t.Context(), compile.Options{Dir: dir, Roots: []string{"proto"}})
	if err != nil {
		t.Fatalf("%v\n%s", err, schema)
	}
	if errs := project.Diagnostics.Errors(); errs != nil {
		for _, d := range errs {
			if d.Pos.Line == 0 {
				t.Errorf("a diagnostic without a place: %s\n%s", d, schema)
			}
		}
		return
	}
	files, err := project.Generate()
	if err != nil {
		t.Fatalf("the schema has no error, but: %v\n%s", err, schema)
	}
	c.compileAll(t, files, schema)
}

func (c *checker) compileAll(t *testing.T, files []compile.File, schema string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generated, c.sources = map[string]*types.Package{}, map[string][]*ast.File{}
	for _, f := range files {
		tree, err := parser.ParseFile(c.fset, f.Name, f.Content, parser.ParseComments)
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, schema, f.Content)
		}
		formatted, err := format.Source([]byte(f.Content))
		if ours := strings.HasSuffix(f.Name, ".backstage.go"); ours && (err != nil || string(formatted) != f.Content) {
			t.Errorf("%s is not formatted (%v)\n%s\n%s", f.Name, err, schema, f.Content)
		}
		if d := directiveLine.FindString(f.Content); d != "" {
			t.Errorf("%s has a directive: %q\n%s", f.Name, d, schema)
		}
		importPath := path.Join("example.com/shop", path.Dir(f.Name))
		c.sources[importPath] = append(c.sources[importPath], tree)
	}
	for _, importPath := range slices.Sorted(maps.Keys(c.sources)) {
		if _, err := c.Import(importPath); err != nil {
			t.Errorf("%s does not compile: %v\n%s\n%s", importPath, err, schema, source(files, importPath))
		}
	}
}

func source(files []compile.File, importPath string) string {
	for _, f := range files {
		if path.Join("example.com/shop", path.Dir(f.Name)) == importPath {
			return f.Content
		}
	}
	return ""
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var directiveLine = regexp.MustCompile(`(?m)^\s*//(go:[a-z0-9]|line |export |extern ).*|^#?cgo .*|^// ?\+build.*`)

// A name of 240 letters does not get into a file name but once, in a folder.
func TestVeryLongNamesCompile(t *testing.T) {
	t.Parallel()
	c := newChecker(t, runtime, module+"/schema/backstage/v1", "google.golang.org/protobuf/types/known/emptypb")
	long := strings.Repeat("Long", 60)
	compiles(t, c, fmt.Sprintf(`syntax = "proto3";
package fuzz.v1;
import "backstage/v1/options.proto";
import "google/protobuf/empty.proto";
option go_package = "example.com/shop/x";
service %[1]s {
  rpc %[1]sTask(%[1]sMessage) returns (google.protobuf.Empty) {
    option (backstage.v1.task) = {then: "%[1]sTask" ordering_key: "{%[1]s}"};
  }
}
message %[1]sMessage {
  string %[1]s = 1;
}
`, long))
}
