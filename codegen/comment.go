package codegen

import (
	"strings"
	"unicode"

	"google.golang.org/protobuf/compiler/protogen"
)

// commentText returns the comment of a schema's element as plain lines, without
// what is addressed to linters and what may not stand in Go source.
func commentText(set protogen.CommentSet) string {
	raw := string(set.Leading)
	if strings.TrimSpace(raw) == "" {
		raw = string(set.Trailing)
	}
	raw = linterBlock(raw)
	var lines []string
	for line := range strings.SplitSeq(raw, "\n") {
		line = strings.TrimRightFunc(strings.Map(printable, strings.ToValidUTF8(line, "?")), unicode.IsSpace)
		if !addressedToTools(line) {
			lines = append(lines, strings.TrimPrefix(line, " "))
		}
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// linterBlock drops api-linter's comments in a comment, (-- … --).
func linterBlock(s string) string {
	for {
		before, rest, found := strings.Cut(s, "(--")
		if !found {
			return s
		}
		_, after, closed := strings.Cut(rest, "--)")
		if !closed {
			return s
		}
		s = before + after
	}
}

// printable drops what Go does not accept in source or its printer takes for
// layout.
func printable(r rune) rune {
	switch {
	case r == '\t':
		return r
	case r == '\ufeff', unicode.IsControl(r):
		return -1
	}
	return r
}

// addressedToTools also knows the build constraints of old, which Go reads
// behind a space, too.
func addressedToTools(line string) bool {
	line = strings.TrimSpace(line)
	for _, prefix := range []string{"buf:lint:", "buf:breaking:", "protolint:", "+build"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}
