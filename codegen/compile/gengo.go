package compile

import (
	gengo "google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
)

// generateMessages is protoc-gen-go's main function without its flags. The
// package comes without a promise of compatibility, so it is used here only, and
// a test compares the output with that of the real program.
func generateMessages(gen *protogen.Plugin) error {
	for _, file := range gen.Files {
		if file.Generate {
			gengo.GenerateFile(gen, file)
		}
	}
	gen.SupportedFeatures = gengo.SupportedFeatures
	gen.SupportedEditionsMinimum = gengo.SupportedEditionsMinimum
	gen.SupportedEditionsMaximum = gengo.SupportedEditionsMaximum
	return nil
}
