package codegen

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A segment is a piece of a key template: literal text, or the path of a field.
type segment struct {
	literal  string
	path     []string
	optional bool
	// offset is where the segment starts in the template.
	offset int
}

func (s segment) source() string {
	return strings.Join(s.path, ".")
}

// A syntaxError is a template that does not parse, with the byte at which that
// shows and the piece of the template that is to blame.
type syntaxError struct {
	offset int
	near   string
	text   string
}

// Error returns what is wrong and where in the template.
func (e *syntaxError) Error() string {
	return fmt.Sprintf("offset %d: %s", e.offset, e.text)
}

// parseTemplate splits a key template:
//
//	key  = { literal | "{" path [ "?" ] "}" } .
//	path = field { "." field } .
//
// {{ and }} stand for braces in literal text. Literals that touch are one.
func parseTemplate(text string) ([]segment, error) {
	p := templateParser{text: text}
	for p.pos < len(text) {
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	p.flush()
	return p.out, nil
}

type templateParser struct {
	text    string
	pos     int
	literal strings.Builder
	start   int // of the literal
	out     []segment
}

func (p *templateParser) next() error {
	rest := p.text[p.pos:]
	switch {
	case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
		p.take(rest[:1], 2)
	case rest[0] == '{':
		return p.field(rest)
	case rest[0] == '}':
		return &syntaxError{p.pos, "}", "a } without its {; write }} for a brace"}
	default:
		r, width := utf8.DecodeRuneInString(rest)
		if unicode.IsControl(r) {
			return &syntaxError{p.pos, "", "a control character"}
		}
		p.take(rest[:width], width)
	}
	return nil
}

func (p *templateParser) take(s string, width int) {
	if p.literal.Len() == 0 {
		p.start = p.pos
	}
	p.literal.WriteString(s)
	p.pos += width
}

func (p *templateParser) flush() {
	if p.literal.Len() > 0 {
		p.out = append(p.out, segment{literal: p.literal.String(), offset: p.start})
		p.literal.Reset()
	}
}

func (p *templateParser) field(rest string) error {
	end := strings.IndexByte(rest, '}')
	if end < 0 {
		return &syntaxError{p.pos, rest, "a { without its }; write {{ for a brace"}
	}
	whole := rest[:end+1]
	inner, optional := strings.CutSuffix(rest[1:end], "?")
	if inner == "" {
		return &syntaxError{p.pos, whole, "an empty {}; name a field"}
	}
	path := strings.Split(inner, ".")
	for _, name := range path {
		if !isFieldName(name) {
			return &syntaxError{p.pos, whole, fmt.Sprintf("%q is no field path", inner)}
		}
	}
	p.flush()
	p.out = append(p.out, segment{path: path, optional: optional, offset: p.pos})
	p.pos += len(whole)
	return nil
}

func isFieldName(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
