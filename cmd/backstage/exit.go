package main

import (
	"errors"
	"fmt"

	"github.com/backstage-go/backstage/codegen"
)

// The exit codes, as doc.go has them.
const (
	exitOK       = 0
	exitFindings = 1
	exitUsage    = 2
	exitFailed   = 3
)

// errFindings ends a command that has printed what it found.
var errFindings = errors.New("there are findings")

// A usageError is a wrong use of a command.
type usageError struct{ text string }

// Error says what is wrong.
func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// exitCode returns the exit code for what a command returned.
func exitCode(err error) int {
	var usage *usageError
	var diagnostics codegen.Diagnostics
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errFindings), errors.As(err, &diagnostics):
		return exitFindings
	case errors.As(err, &usage):
		return exitUsage
	}
	return exitFailed
}
