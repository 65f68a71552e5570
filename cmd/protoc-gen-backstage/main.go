// Command protoc-gen-backstage is the plugin by which protoc and buf generate
// Go for task services. They call it by its name:
//
//	protoc --go_out=. --backstage_out=. --backstage_opt=module=example.com/shop shop/v1/orders_tasks.proto
//
// It takes the parameters of protoc-gen-go (paths, module, M, annotate_code) and
// no others. backstage generate does the same without protoc and without buf.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/backstage-go/backstage/codegen"
)

const help = `protoc-gen-backstage is a plugin for protoc and buf, which run it themselves:

	protoc --go_out=. --backstage_out=. shop/v1/orders_tasks.proto

Without either, use: go tool backstage generate
`

func main() {
	if answered(os.Stdout, os.Args[1:]) {
		return
	}
	codegen.RunPlugin()
}

// answered answers what people ask on the command line, before protogen says
// that the program is not for people.
func answered(w io.Writer, args []string) bool {
	if len(args) != 1 {
		return false
	}
	switch args[0] {
	case "--version":
		fmt.Fprintln(w, "protoc-gen-backstage", version())
	case "--help", "-h":
		fmt.Fprint(w, help)
	default:
		return false
	}
	return true
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
