package compile

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/bufbuild/protocompile/ast"
	"google.golang.org/protobuf/types/descriptorpb"

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

// directiveFinder finds what Go would obey in a line of a comment. protoc drops the
// spaces and the star that a block comment's lines may begin with, so behind spaces
// alone there is a directive, too; but there words like export begin a sentence.
type directiveFinder struct{ build, others, indented *regexp.Regexp }

func newDirectiveFinder() directiveFinder {
	return directiveFinder{
		build:    regexp.MustCompile(`^[\s\p{Z}\x{85}*]*(\+build)[\s\p{Z}\x{85}]`),
		others:   regexp.MustCompile(`^(?:\s*\*)?(go:[a-z0-9]\S*|line|export|extern|#?cgo)(?:\s|$)`),
		indented: regexp.MustCompile(`^\s+(?:(go:[a-z0-9]\S*)\s|(line)\s.*:\d+\s*$)`),
	}
}

func (find directiveFinder) inComment(tree *ast.FileNode, c ast.Comment) codegen.Diagnostics {
	var out codegen.Diagnostics
	start := span(tree.ItemInfo(c.AsItem()))
	for i, line := range strings.Split(commentBody(c.RawText()), "\n") {
		word := find.inLine(line)
		if word == "" && i > 0 {
			word = firstGroup(find.indented, line+" ")
		}
		if word == "" {
			continue
		}
		pos := start
		if i > 0 {
			pos = codegen.Position{File: start.File, Line: start.Line + i, Column: 1}
		}
		out = append(out, obeyed(pos, strings.TrimSpace(line), word))
	}
	return out
}

// inDescriptor finds the same in a file that comes without its source, where the
// comments are as Go gets them and words like export may begin a sentence.
func (find directiveFinder) inDescriptor(file *descriptorpb.FileDescriptorProto) codegen.Diagnostics {
	var out codegen.Diagnostics
	for _, loc := range file.GetSourceCodeInfo().GetLocation() {
		comments := append(loc.LeadingDetachedComments, loc.GetLeadingComments(), loc.GetTrailingComments())
		for line := range strings.SplitSeq(strings.Join(comments, "\n"), "\n") {
			word := firstGroup(find.build, line+" ")
			if word == "" && line == strings.TrimLeft(line, " \t") {
				word = firstGroup(find.indented, " "+line+" ")
			}
			if word != "" {
				out = append(out, obeyed(spanOf(file.GetName(), loc.Span), "", word))
			}
		}
	}
	return out
}

func obeyed(pos codegen.Position, near, word string) codegen.Diagnostic {
	return codegen.Diagnostic{
		Pos:     pos,
		Near:    near,
		Message: fmt.Sprintf("a comment that Go would take for a directive, %q; put other words in front of it", word),
	}
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
	return cmp.Or(firstGroup(find.build, line), firstGroup(find.others, line))
}

// firstGroup returns the first group of a match that is not empty, "" if none.
func firstGroup(pattern *regexp.Regexp, line string) string {
	if m := pattern.FindStringSubmatch(line); m != nil {
		return cmp.Or(m[1:]...)
	}
	return ""
}
