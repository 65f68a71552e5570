package main

import "github.com/backstage-go/backstage/codegen"

// finding is a diagnostic in JSON.
type finding struct {
	Severity  string   `json:"severity"`
	File      string   `json:"file"`
	Line      int      `json:"line"`
	Column    int      `json:"column"`
	EndLine   int      `json:"end_line"`
	EndColumn int      `json:"end_column"`
	Message   string   `json:"message"`
	Hint      string   `json:"hint"`
	Paste     []string `json:"paste"`
}

func findingsOf(ds codegen.Diagnostics) []finding {
	out := make([]finding, len(ds))
	for i, d := range ds {
		message := d.Message
		if d.Other.File != "" {
			message += ", at " + d.Other.String()
		}
		out[i] = finding{
			Severity: severity(d.Severity),
			File:     d.Pos.File,
			Line:     d.Pos.Line, Column: d.Pos.Column,
			EndLine: d.Pos.EndLine, EndColumn: d.Pos.EndColumn,
			Message: message,
			Hint:    d.Hint,
			Paste:   orEmpty(d.Paste),
		}
	}
	return out
}

func severity(s codegen.Severity) string {
	if s == codegen.Warning {
		return "warning"
	}
	return "error"
}

// orEmpty keeps null out of JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
