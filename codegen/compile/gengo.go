package compile

import (
	gengo "google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/gofeaturespb"
)

// generateMessages is protoc-gen-go's main function for one schema, without its
// flags. The package comes without a promise of compatibility, so it is used here
// only, and a test compares the output with that of the real program.
func generateMessages(gen *protogen.Plugin, file *protogen.File) error {
	gengo.GenerateFile(gen, file)
	gen.SupportedFeatures = gengo.SupportedFeatures
	gen.SupportedEditionsMinimum = gengo.SupportedEditionsMinimum
	gen.SupportedEditionsMaximum = gengo.SupportedEditionsMaximum
	return nil
}

// isHybrid says whether generateMessages changes the schema's messages, so that
// they can be generated once only: protoc-gen-go writes two files for the hybrid
// API, and makes the messages opaque for the second.
func isHybrid(file *protogen.File) bool {
	return file.APILevel == gofeaturespb.GoFeatures_API_HYBRID
}
