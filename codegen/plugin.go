package codegen

import (
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"
)

// RunPlugin is protoc-gen-backstage: it reads a request on standard input, answers
// on standard output, and ends the process with 1 if it cannot. It takes the
// parameters of protoc-gen-go and refuses all others.
func RunPlugin() {
	protogen.Options{ParamFunc: unknownParameter}.Run(Generate)
}

func unknownParameter(name, _ string) error {
	return fmt.Errorf("unknown parameter %q", name)
}
