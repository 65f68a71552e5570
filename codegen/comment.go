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
	text := strings.Join(lines, "\n")
	for strings.Contains(text, "\n\n\n") {
		text = strings.ReplaceAll(text, "\n\n\n", "\n\n") // paragraphs are one empty line apart
	}
	return strings.Trim(text, "\n")
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

// printable drops what Go does not accept in source, its printer takes for layout,
// or lets a line read in another order than it is written.
func printable(r rune) rune {
	switch {
	case r == '\t':
		return r
	case r == '\ufeff', unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return -1
	}
	return r
}

// addressedToTools also knows the build constraints of old, which Go reads
// behind a space, too, as linters read what is addressed to them behind more
// slashes.
func addressedToTools(line string) bool {
	line = strings.TrimLeftFunc(line, func(r rune) bool { return r == '/' || unicode.IsSpace(r) })
	for _, prefix := range []string{"buf:lint:", "buf:breaking:", "protolint:", "nolint", "lint:", "revive:", "#nosec", "+build"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}
