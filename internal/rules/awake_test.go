package rules

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// sleepers are the files in which tests may sleep, or folders of them (with a slash
// at the end), each with its reason.
func sleepers() map[string]string {
	return map[string]string{
		"runtime/provider/providertest/":     "the suite judges brokers from outside: it provokes random moments, and that nothing more comes can only be waited for",
		"runtime/backstagetest/harness.go":   "Advance promises to let time pass, outside of a bubble too; Drain asks a provider that cannot say when it is quiet",
		"providers/memory/dead_test.go":      "a desk stands in a bubble, and this is one of its methods",
		"providers/embedded/reserve_test.go": "nothing may tell a call when the writer is done, or the race that is looked for is none",
		"internal/scenario/":                 "other processes work at a pace, and are asked again and again how far they are",
	}
}

func maySleep(s *source) bool {
	for where := range sleepers() {
		if s.path == where || strings.HasSuffix(where, "/") && strings.HasPrefix(s.path, where) {
			return true
		}
	}
	return false
}

func TestSleepersSleep(t *testing.T) {
	t.Parallel()
	for where := range sleepers() {
		if !slices.ContainsFunc(repository(t), func(s *source) bool {
			return strings.HasPrefix(s.path, where) && len(sleeps(s, nil)) > 0
		}) {
			t.Errorf("%s may sleep and does not: take it from the list", where)
		}
	}
}

// awake keeps tests from sleeping for a time that somebody guessed.
func awake() law {
	return law{
		name:    "tests do not sleep",
		because: "a sleep is too short on a loaded machine and too long on others: wait for what happens, use testing/synctest, or give a reason in awake_test.go",
		check:   asleep,
		examples: []example{
			{"a_test.go", "package p\n\nfunc f() {\n\ttime.Sleep(1)\n}\n", []string{"a_test.go:4: time.Sleep"}},
			{"a.go", "package ptest\n\nfunc f() { time.Sleep(1) }\n", []string{"a.go:3: time.Sleep"}},
			{"a.go", "package p\n\nfunc f() { time.Sleep(1) }\n", nil},
			{"a_test.go", "package p\n\nfunc f() {\n\tsynctest.Test(t, func(*testing.T) { time.Sleep(1) })\n}\n", nil},
			{"a_test.go", "package p\n\nfunc bubble(f func()) { synctest.Test(t, f) }\n\nfunc row(n string, f func()) { bubble(f) }\n\nfunc f() {\n\tbubble(func() { time.Sleep(1) })\n\trow(\"\", func() { time.Sleep(2) })\n\ttime.Sleep(3)\n}\n",
				[]string{"a_test.go:10: time.Sleep"}},
			{"a_test.go", "package p\n\nfunc pass() {\n\ttime.Sleep(1)\n\tsynctest.Wait()\n}\n", nil},
		},
	}
}

func asleep(files []*source) []string {
	var out []string
	rooms := folders(files)
	for _, folder := range slices.Sorted(maps.Keys(rooms)) {
		inside := bubbles(rooms[folder])
		for _, s := range rooms[folder] {
			if (s.test || strings.HasSuffix(s.file.Name.Name, "test")) && !maySleep(s) {
				out = append(out, sleeps(s, inside)...)
			}
		}
	}
	return out
}

// bubbles returns the functions of a folder that run a function in a bubble of
// synctest, in which time is not waited for.
func bubbles(files []*source) map[string]bool {
	out := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, s := range files {
			for _, decl := range s.file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if ok && !out[f.Name.Name] && takesFunc(f) && begins(f, out) {
					out[f.Name.Name], grown = true, true
				}
			}
		}
	}
	return out
}

func takesFunc(f *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		_, ok := p.Type.(*ast.FuncType)
		return ok
	})
}

func begins(n ast.Node, bubbles map[string]bool) bool {
	return has(n, func(call *ast.CallExpr) bool { return begin(call, bubbles) })
}

func begin(call *ast.CallExpr, bubbles map[string]bool) bool {
	name, ok := call.Fun.(*ast.Ident)
	return ok && bubbles[name.Name] || calls(call, "synctest", "Test")
}

func has(n ast.Node, is func(*ast.CallExpr) bool) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && is(call)
		return !found
	})
	return found
}

// sleeps returns the calls of time.Sleep outside of a bubble. A function that calls
// synctest.Wait is in one, because Wait panics elsewhere.
func sleeps(s *source, bubbles map[string]bool) []string {
	var out []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return !has(n, func(call *ast.CallExpr) bool { return calls(call, "synctest", "Wait") })
		case *ast.CallExpr:
			if calls(n, "time", "Sleep") {
				out = append(out, fmt.Sprintf("%s: time.Sleep", s.at(n)))
			}
			return !begin(n, bubbles)
		}
		return true
	})
	return out
}
