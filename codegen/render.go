package codegen

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Render writes diagnostics with the lines of source that they are about:
//
//	shop/v1/orders.proto:31:7: task ChargeCard: then: no task "SendReciept"
//	   31 |       then: "SendReciept"
//	      |             ^^^^^^^^^^^^^ did you mean "SendReceipt"?
//
// source returns a file's content and whether it is known; without it the
// diagnostic is printed as [Diagnostic.String] has it.
func (ds Diagnostics) Render(w io.Writer, source func(file string) (string, bool)) error {
	for _, d := range ds {
		if _, err := io.WriteString(w, d.render(source)); err != nil {
			return err
		}
	}
	return nil
}

func (d Diagnostic) render(source func(file string) (string, bool)) string {
	line, ok := sourceLine(d.Pos, source)
	if !ok {
		return d.String() + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%5d | %s\n", d.head(), d.Pos.Line, line)
	start, end := d.underlined(line)
	fmt.Fprintf(&b, "      | %s%s", blank(line[:start]), strings.Repeat("^", max(1, utf8.RuneCountInString(line[start:end]))))
	if d.Hint != "" {
		b.WriteString(" " + d.Hint)
	}
	b.WriteString("\n")
	for _, p := range d.Paste {
		b.WriteString("\t" + p + "\n")
	}
	return b.String()
}

func sourceLine(pos Position, source func(string) (string, bool)) (string, bool) {
	if pos.Line == 0 || source == nil {
		return "", false
	}
	text, ok := source(pos.File)
	if !ok {
		return "", false
	}
	lines := strings.Split(text, "\n")
	if pos.Line > len(lines) {
		return "", false
	}
	line := strings.TrimRight(lines[pos.Line-1], "\r")
	if pos.Line == 1 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	return line, true
}

// underlined returns the bytes of the line that the carets stand under.
func (d Diagnostic) underlined(line string) (start, end int) {
	start = offsetOf(line, d.Pos.Column)
	if i := strings.Index(line[start:], d.Near); d.Near != "" && i >= 0 {
		return start + i, start + i + len(d.Near)
	}
	end = len(strings.TrimRight(line, " \t"))
	if d.Pos.EndLine == d.Pos.Line && d.Pos.EndColumn > d.Pos.Column {
		end = offsetOf(line, d.Pos.EndColumn)
	}
	return start, max(start, end)
}

// offsetOf returns the byte at which a column begins, where tabs reach to the
// next multiple of 8.
func offsetOf(line string, column int) int {
	col := 0
	for i, r := range line {
		if col >= column-1 {
			return i
		}
		if r == '\t' {
			col += 8 - col%8
		} else {
			col++
		}
	}
	return len(line)
}

// blank returns white space as wide as text, tabs kept, so that what follows
// stands below what follows text.
func blank(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, text)
}
