package codegen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Severity says what a diagnostic means for the run that found it.
type Severity int

const (
	// Error stops the run: nothing is generated.
	Error Severity = iota
	// Warning is printed and stops nothing.
	Warning
)

// A Position is a place in a schema. Lines and columns count from 1; a line of
// 0 means that only the file is known, which happens when a descriptor carries
// no source info. Columns count characters, with a tab up to the next multiple
// of 8, as protoc and buf count them.
type Position struct {
	File      string
	Line      int
	Column    int
	EndLine   int
	EndColumn int
}

// String returns the position as editors understand it: file:line:col, or the
// file alone when that is all that is known.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// A Diagnostic is one thing that is wrong with a schema, and what to do about
// it.
type Diagnostic struct {
	Severity Severity
	Pos      Position
	// Message says what is wrong, without position.
	Message string
	// Other is the place that Message ends with, if it is about two.
	Other Position
	// Near is the piece of source to underline, for example a misspelt name
	// with its quotes. Empty underlines everything from Pos to its end.
	Near string
	// Hint stands behind the carets: did you mean "SendReceipt"?
	Hint string
	// Paste has lines to put into the schema as they are.
	Paste []string
}

// String returns the diagnostic without the line of source that it is about,
// for callers that do not have the sources, such as a protoc plugin.
func (d Diagnostic) String() string {
	var b strings.Builder
	b.WriteString(d.head())
	if d.Hint != "" {
		fmt.Fprintf(&b, " (%s)", d.Hint)
	}
	for _, line := range d.Paste {
		b.WriteString("\n\t" + line)
	}
	return b.String()
}

func (d Diagnostic) head() string {
	head := d.Pos.String() + ": "
	if d.Severity == Warning {
		head += "warning: "
	}
	head += d.Message
	if d.Other.File != "" {
		head += ", at " + d.Other.String()
	}
	return head
}

// Diagnostics is everything that is wrong with a set of schemas. As an error it
// prints one diagnostic after the other, sorted by place.
type Diagnostics []Diagnostic

// Error returns all diagnostics, one after the other, without source lines.
func (ds Diagnostics) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// Errors returns those diagnostics that stop a run, nil when there are none.
func (ds Diagnostics) Errors() Diagnostics {
	return ds.only(Error)
}

// Warnings returns those diagnostics that stop nothing.
func (ds Diagnostics) Warnings() Diagnostics {
	return ds.only(Warning)
}

func (ds Diagnostics) only(s Severity) Diagnostics {
	var out Diagnostics
	for _, d := range ds {
		if d.Severity == s {
			out = append(out, d)
		}
	}
	return out
}

// Sort orders diagnostics by place, and by message at one place, so that two
// runs over one schema print the same.
func (ds Diagnostics) Sort() {
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.Pos.File, b.Pos.File),
			cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Column, b.Pos.Column),
			cmp.Compare(a.Message, b.Message),
		)
	})
}
