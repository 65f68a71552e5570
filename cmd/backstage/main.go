package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if isPlugin(os.Args[0]) {
		runPlugin()
		return
	}
	os.Exit(program().Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func isPlugin(program string) bool {
	return strings.HasPrefix(filepath.Base(program), "protoc-gen-")
}
