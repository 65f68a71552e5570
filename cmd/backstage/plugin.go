package main

import (
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"

	"github.com/backstage-go/backstage/codegen"
)

// runPlugin is protoc-gen-backstage, for those who have this program under that
// name.
func runPlugin() {
	protogen.Options{ParamFunc: func(name, _ string) error {
		return fmt.Errorf("unknown parameter %q", name)
	}}.Run(codegen.Generate)
}
