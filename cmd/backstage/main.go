package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if isPlugin(os.Args[0]) {
		runPlugin()
		return
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs one command and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &console{in: stdin, out: stdout, err: stderr}
	if len(args) == 0 {
		fmt.Fprint(stderr, overview())
		return exitUsage
	}
	name, rest := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		return c.help(rest)
	case "-version", "--version":
		name = "version"
	}
	cmd := find(name)
	if cmd == nil {
		return c.unknown(name)
	}
	return cmd.run(c, rest)
}

func isPlugin(program string) bool {
	return strings.HasPrefix(filepath.Base(program), "protoc-gen-")
}
