package codegen

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// jennifer's Comment and Lit are unsafe for what schemas contain.
func TestTextReachesJenniferThroughOneFileOnly(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !unsafeText(method.Sel.Name) {
				return true
			}
			found++
			if name != "jennifer.go" {
				t.Errorf("%s calls %s; use comment() or lit() of jennifer.go", fset.Position(call.Pos()), method.Sel.Name)
			}
			return true
		})
	}
	if found == 0 {
		t.Error("jennifer.go calls neither Comment nor Lit, so this test no longer tests anything")
	}
}

func unsafeText(name string) bool {
	switch name {
	case "Comment", "Commentf", "Lit", "LitFunc", "LitByte", "LitRune", "LitRuneFunc":
		return true
	}
	return false
}

func TestCommentsNeverBecomeDirectives(t *testing.T) {
	t.Parallel()
	text := "go:generate touch x\n  go:embed x\n\tgo:build y\nline /etc/passwd:1\n\n  indented */ end\n\ttab\r\n\x00\f\ufeffodd"
	want := "// \"go:generate\" touch x\n//   \"go:embed\" x\n//\t\"go:build\" y\n// line /etc/passwd:1\n//\n//   indented */ end\n//\ttab\n// odd"
	if got := lineComment(text); got != want {
		t.Errorf("lineComment(%q)\n got %q\nwant %q", text, got, want)
	}
}

// gofmt formats comments, and what it has formatted sometimes otherwise again.
func TestCommentsAreAsGofmtHasThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"A task.":        "// A task.",
		"a\n - b\n - c":  "// a\n//   - b\n//   - c",
		"\t\n }":         "// }",
		"# \n\n\tb":      "// #\n//\n//\tb",
		"\u00a0+build x": "// \u00a0\"+build\" x",
	} {
		got := docComment(text)
		if got != want {
			t.Errorf("docComment(%q)\n got %q\nwant %q", text, got, want)
		}
		source := "package p\n\n" + got + "\ntype t int\n"
		if formatted, err := format.Source([]byte(source)); err != nil || string(formatted) != source {
			t.Errorf("gofmt makes of it: %v\n%s", err, formatted)
		}
	}
}
