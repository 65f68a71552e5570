package compile

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/bufbuild/protocompile/ast"

	"github.com/backstage-go/backstage/codegen"
)

// directives refuses comments that Go would obey. protoc-gen-go copies comments
// to the start of a line, where //go:generate is run by the next go generate;
// schemas come from other teams, and must not run programs.
func (s *source) directives() codegen.Diagnostics {
	var out codegen.Diagnostics
	items := s.tree.Items()
	for item, ok := items.First(); ok; item, ok = items.Next(item) {
		if _, c := s.tree.GetItem(item); c.IsValid() {
			out = append(out, commentDirectives(s.tree, c)...)
		}
	}
	return out
}

func commentDirectives(tree *ast.FileNode, c ast.Comment) codegen.Diagnostics {
	var out codegen.Diagnostics
	start := span(tree.ItemInfo(c.AsItem()))
	for i, line := range strings.Split(commentBody(c.RawText()), "\n") {
		word := directive(line)
		if word == "" {
			continue
		}
		pos := start
		if i > 0 {
			pos = codegen.Position{File: start.File, Line: start.Line + i, Column: 1}
		}
		out = append(out, codegen.Diagnostic{
			Pos:     pos,
			Near:    strings.TrimSpace(line),
			Message: fmt.Sprintf("a comment that Go would take for a directive, %q; put a space or other words in front of it", word),
		})
	}
	return out
}

func commentBody(raw string) string {
	if body, ok := strings.CutPrefix(raw, "//"); ok {
		return body
	}
	return strings.TrimSuffix(strings.TrimPrefix(raw, "/*"), "*/")
}

// directive returns what Go would obey in a line of a comment, "" if nothing. A
// block comment's lines may begin with spaces and a star, which protoc drops.
func directive(line string) string {
	line = strings.TrimRight(line, "\r")
	if m := regexp.MustCompile(`^[\s*]*(\+build)\s`).FindStringSubmatch(line + " "); m != nil {
		return m[1]
	}
	m := regexp.MustCompile(`^(?:\s*\*)?(go:[a-z0-9]\S*|line|export|extern|#?cgo)(?:\s|$)`).FindStringSubmatch(line + " ")
	if m == nil {
		return ""
	}
	return m[1]
}
