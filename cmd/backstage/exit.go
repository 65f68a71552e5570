package main

import (
	"errors"

	"github.com/backstage-go/backstage/codegen"
	"github.com/backstage-go/backstage/internal/command"
)

// The exit codes, as doc.go has them.
const (
	exitOK       = command.OK
	exitFindings = 1
	exitUsage    = command.Usage
	exitFailed   = 3
)

// exitCode returns the exit code for what a command returned, wrong usage aside.
// A command that has printed what it found returns command.ErrShown.
func exitCode(err error) int {
	var diagnostics codegen.Diagnostics
	if errors.Is(err, command.ErrShown) || errors.As(err, &diagnostics) {
		return exitFindings
	}
	return exitFailed
}
