package codegen

import (
	doc "go/doc/comment"
	"strings"
	"time"
	"unicode"

	"github.com/dave/jennifer/jen"
)

// This file is the only one that hands text to jennifer: its Comment makes a
// block comment of several lines, which a schema's "*/" would end, and its Lit
// panics on types that it does not know.

// comment renders text as line comments. There is always a space or a tab behind the
// slashes, so that no line of a schema becomes a directive of the go tool; a word
// that would be one without it is quoted, because linters take it for a mistake.
func comment(text string) jen.Code {
	return jen.Comment(docComment(text))
}

// docComment is lineComment for what stands above a declaration, in the layout
// that gofmt gives it. gofmt does not always know its own layout again.
func docComment(text string) string {
	for range 5 {
		again := strings.TrimSuffix(string(new(doc.Printer).Comment(new(doc.Parser).Parse(text))), "\n")
		if again == text {
			break
		}
		text = again
	}
	return lineComment(text)
}

func lineComment(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimRight(strings.Map(printable, line), " \t")
		if words := strings.TrimLeftFunc(line, unicode.IsSpace); strings.HasPrefix(words, "go:") || strings.HasPrefix(words, "+build") {
			word, rest, _ := strings.Cut(words, " ")
			line = strings.TrimSuffix(line, words) + strings.TrimSpace("\""+word+"\" "+rest)
		}
		if line != "" && line[0] != '\t' {
			line = " " + line
		}
		lines[i] = "//" + line
	}
	return strings.Join(lines, "\n")
}

// paragraphs joins what is not empty by empty lines.
func paragraphs(texts ...string) string {
	var out []string
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	return strings.Join(out, "\n\n")
}

// lit renders a literal.
func lit[T string | int](v T) *jen.Statement {
	return jen.Lit(v)
}

// lits renders a list of strings.
func lits(list []string) []jen.Code {
	out := make([]jen.Code, len(list))
	for i, s := range list {
		out[i] = lit(s)
	}
	return out
}

// duration renders a duration as one would write it: 30 * time.Second.
func duration(d time.Duration) *jen.Statement {
	units := []struct {
		size time.Duration
		name string
	}{
		{time.Hour, "Hour"},
		{time.Minute, "Minute"},
		{time.Second, "Second"},
		{time.Millisecond, "Millisecond"},
		{time.Microsecond, "Microsecond"},
		{time.Nanosecond, "Nanosecond"},
	}
	for _, u := range units {
		switch {
		case d == u.size:
			return jen.Qual("time", u.name)
		case d%u.size == 0:
			return lit(int(d/u.size)).Op("*").Qual("time", u.name)
		}
	}
	return lit(int(d))
}

// field renders one field of a composite literal.
func field(name string, value jen.Code) jen.Code {
	return jen.Id(name).Op(":").Add(value)
}

// fields renders the fields of a composite literal in the given order, one a
// line.
func fields(list ...jen.Code) jen.Code {
	return jen.Custom(jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}, list...)
}

// args renders the arguments of a call, one a line.
func args(list ...jen.Code) jen.Code {
	return jen.Custom(jen.Options{Open: "(", Close: ")", Separator: ",", Multi: true}, list...)
}

// inline renders a block or a struct on one line.
func inline(code ...jen.Code) jen.Code {
	return jen.Custom(jen.Options{Open: "{ ", Close: " }", Separator: "; "}, code...)
}
