package codegen

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Render writes diagnostics with the lines of source that they are about:
//
//	shop/v1/orders.proto:31:13: task ChargeCard: then: no task "SendReciept"
//	   31 |       then: "SendReciept"
//	      |             ^^^^^^^^^^^^^ did you mean "SendReceipt"?
//
// Lines to paste follow the words that lead to them: the message, or the hint
// where there is one. source returns a file's content and whether it is known;
// without it the diagnostic is printed as [Diagnostic.String] has it.
func (ds Diagnostics) Render(w io.Writer, source func(file string) (string, bool)) error {
	for _, d := range ds {
		if _, err := io.WriteString(w, d.render(source)); err != nil {
			return err
		}
	}
	return nil
}

// Narrow moves each position to what is to be underlined, so that the place that
// is printed is the place that an editor should open.
func (ds Diagnostics) Narrow(source func(file string) (string, bool)) {
	for i := range ds {
		ds[i].narrow(source)
	}
}

// narrow looks for what is near in all lines that the position spans: a value
// may stand below its name.
func (d *Diagnostic) narrow(source func(string) (string, bool)) {
	if d.Near == "" {
		return
	}
	at := d.Pos
	for ; at.Line == d.Pos.Line || at.Line <= d.Pos.EndLine; at.Line, at.Column = at.Line+1, 1 {
		line, ok := sourceLine(at, source)
		if !ok {
			return
		}
		start := offsetOf(line, at.Column)
		if i := strings.Index(line[start:], d.Near); i >= 0 {
			start += i
			d.Pos.Line, d.Pos.Column = at.Line, columnOf(line, start)
			d.Pos.EndLine, d.Pos.EndColumn = at.Line, columnOf(line, start+len(d.Near))
			return
		}
	}
}

func (d Diagnostic) render(source func(file string) (string, bool)) string {
	d.narrow(source)
	line, ok := sourceLine(d.Pos, source)
	if !ok {
		return d.String() + "\n"
	}
	var paste strings.Builder
	for _, p := range d.Paste {
		paste.WriteString("\t" + p + "\n")
	}
	var b strings.Builder
	b.WriteString(d.head() + "\n")
	if d.Hint == "" {
		b.WriteString(paste.String())
	}
	start, end := d.underlined(line)
	fmt.Fprintf(&b, "%5d | %s\n      | %s%s", d.Pos.Line, line,
		blank(line[:start]), strings.Repeat("^", max(1, utf8.RuneCountInString(line[start:end]))))
	if d.Hint == "" {
		return b.String() + "\n"
	}
	return b.String() + " " + d.Hint + "\n" + paste.String()
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
		col = after(col, r)
	}
	return len(line)
}

// Cut returns what stands before a position on its line, and what is there.
func (p Position) Cut(line string) (before, at string) {
	start, end := Diagnostic{Pos: p}.underlined(line)
	return line[:start], line[start:end]
}

// columnOf returns the column of a byte.
func columnOf(line string, offset int) int {
	col := 0
	for _, r := range line[:offset] {
		col = after(col, r)
	}
	return col + 1
}

// after returns the column behind a character, both counted from 0.
func after(col int, r rune) int {
	if r == '\t' {
		return col + 8 - col%8
	}
	return col + 1
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
