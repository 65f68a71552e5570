// Package command is the frame of Backstage's command-line programs: commands
// with flags before and behind their operands, help that is made of what the
// commands say about themselves, suggestions for misspelt names, and exit codes.
//
// A program is a [Program] value; its main does no more than run it:
//
//	os.Exit(program().Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
package command
