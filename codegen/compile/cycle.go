package compile

import (
	"fmt"
	"strings"

	"github.com/bufbuild/protocompile/ast"

	"github.com/backstage-go/backstage/codegen"
)

// importCycles finds schemas that import each other, each circle once, at the
// first of its schemas. The compiler finds them too, but which of a circle's
// schemas it names depends on the order in which it happens to read them.
func (s sources) importCycles() codegen.Diagnostics {
	var out codegen.Diagnostics
	for _, name := range s.names() {
		for _, decl := range s.importsOf(name) {
			way := s.way(decl.Name.AsString(), name, name, map[string]bool{})
			if way == nil {
				continue
			}
			out = append(out, codegen.Diagnostic{
				Pos:     span(s[name].tree.NodeInfo(decl)),
				Near:    `"` + way[0] + `"`,
				Message: fmt.Sprintf("schemas import each other in a circle: %s, %s", name, strings.Join(way, ", ")),
				Hint:    "declare tasks that lead to each other (then) in one file, and what both files need in a third",
			})
			break
		}
	}
	return out
}

// way returns the imports that lead from one schema to another, nil if none do.
// It leaves out what sorts before least, where the circle was found already.
func (s sources) way(from, to, least string, seen map[string]bool) []string {
	if from == to {
		return []string{from}
	}
	if seen[from] || from < least {
		return nil
	}
	seen[from] = true
	for _, decl := range s.importsOf(from) {
		if rest := s.way(decl.Name.AsString(), to, least, seen); rest != nil {
			return append([]string{from}, rest...)
		}
	}
	return nil
}

// importsOf returns the import statements of a schema to generate.
func (s sources) importsOf(name string) []*ast.ImportNode {
	var out []*ast.ImportNode
	if s[name] == nil || s[name].tree == nil {
		return nil
	}
	for _, decl := range s[name].tree.Decls {
		if i, ok := decl.(*ast.ImportNode); ok {
			out = append(out, i)
		}
	}
	return out
}
