package compile

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/backstage-go/backstage/codegen"
)

// characters refuses what Go does not accept in source. The compiler accepts it
// in comments, and protoc-gen-go copies those.
func (s *source) characters() codegen.Diagnostics {
	text := strings.TrimPrefix(s.text, "\ufeff")
	line, start := 1, 0
	for i := 0; i < len(text); {
		r, width := utf8.DecodeRuneInString(text[i:])
		bad := ""
		switch {
		case r == '\n':
			line, start = line+1, i+1
		case r == utf8.RuneError && width == 1:
			bad = fmt.Sprintf("the byte %#x is not valid UTF-8", text[i])
		case r == 0, r == '\ufeff':
			bad = fmt.Sprintf("the character %U may not stand in Go source, to which comments are copied", r)
		}
		if bad != "" {
			column := utf8.RuneCountInString(text[start:i]) + 1
			return codegen.Diagnostics{{
				Pos:     codegen.Position{File: s.name, Line: line, Column: column, EndLine: line, EndColumn: column + 1},
				Message: bad,
			}}
		}
		i += width
	}
	return nil
}
