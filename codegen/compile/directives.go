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
	find := newDirectiveFinder()
	items := s.tree.Items()
	for item, ok := items.First(); ok; item, ok = items.Next(item) {
		if _, c := s.tree.GetItem(item); c.IsValid() {
			out = append(out, find.inComment(s.tree, c)...)
		}
	}
	return out
}

// directiveFinder finds what Go would obey in a line of a comment. A block
// comment's lines may begin with spaces and a star, which protoc drops.
type directiveFinder struct{ build, others *regexp.Regexp }

func newDirectiveFinder() directiveFinder {
	return directiveFinder{
		build:  regexp.MustCompile(`^[\s*]*(\+build)\s`),
		others: regexp.MustCompile(`^(?:\s*\*)?(go:[a-z0-9]\S*|line|export|extern|#?cgo)(?:\s|$)`),
	}
}

func (find directiveFinder) inComment(tree *ast.FileNode, c ast.Comment) codegen.Diagnostics {
	var out codegen.Diagnostics
	start := span(tree.ItemInfo(c.AsItem()))
	for i, line := range strings.Split(commentBody(c.RawText()), "\n") {
		word := find.inLine(line)
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

// inLine returns the directive, "" if there is none.
func (find directiveFinder) inLine(line string) string {
	line = strings.TrimRight(line, "\r") + " "
	for _, pattern := range []*regexp.Regexp{find.build, find.others} {
		if m := pattern.FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	return ""
}
