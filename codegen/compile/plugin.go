package compile

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// newPlugin makes what a plugin would have read from protoc. The request goes
// through bytes, because the compiler leaves options in messages of its own
// making, and only reading them again gives those that Go code knows.
func newPlugin(request *pluginpb.CodeGeneratorRequest) (*protogen.Plugin, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: request.FileToGenerate,
		ProtoFile:      request.ProtoFile,
	})
	if err != nil {
		return nil, err
	}
	fresh := &pluginpb.CodeGeneratorRequest{}
	if err := proto.Unmarshal(b, fresh); err != nil {
		return nil, err
	}
	return protogen.Options{}.New(fresh)
}

// A generator writes what it makes of one schema.
type generator func(*protogen.Plugin, *protogen.File) error

// runPlugin runs a generator over the schemas to generate, several at once.
func runPlugin(name string, plugin *protogen.Plugin, generate generator) ([]File, error) {
	var schemas []*protogen.File
	for _, file := range plugin.Files {
		if file.Generate {
			schemas = append(schemas, file)
		}
	}
	files, errs := make([][]File, len(schemas)), make([]error, len(schemas))
	parallel(len(schemas), func(i int) {
		files[i], errs[i] = runOver(schemas[i], name, plugin, generate)
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return slices.Concat(files...), nil
}

// runOver runs a generator over one schema and checks its response as protoc does.
// What is written goes to a plugin of its own over the same descriptors.
func runOver(file *protogen.File, name string, plugin *protogen.Plugin, generate generator) (_ []File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s panicked: %v", name, r)
		}
	}()
	gen := &protogen.Plugin{Request: plugin.Request, Files: plugin.Files, FilesByPath: plugin.FilesByPath}
	if err := generate(gen, file); err != nil {
		return nil, err
	}
	response := gen.Response()
	if response.Error != nil {
		return nil, fmt.Errorf("%s: %s", name, response.GetError())
	}
	if err := checkSupport(file.Proto, response); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	files := make([]File, len(response.File))
	for i, f := range response.File {
		files[i] = File{Name: f.GetName(), Content: f.GetContent()}
	}
	return files, nil
}

// checkSupport refuses a schema that needs what the generator does not know.
func checkSupport(f *descriptorpb.FileDescriptorProto, response *pluginpb.CodeGeneratorResponse) error {
	features := pluginpb.CodeGeneratorResponse_Feature(response.GetSupportedFeatures())
	if f.GetSyntax() == "editions" {
		if features&pluginpb.CodeGeneratorResponse_FEATURE_SUPPORTS_EDITIONS == 0 {
			return fmt.Errorf("%s: the generator knows no editions", f.GetName())
		}
		if e := int32(f.GetEdition()); e < response.GetMinimumEdition() || e > response.GetMaximumEdition() {
			return fmt.Errorf("%s: the generator does not know %s", f.GetName(), f.GetEdition())
		}
	}
	if hasProto3Optional(f.MessageType) && features&pluginpb.CodeGeneratorResponse_FEATURE_PROTO3_OPTIONAL == 0 {
		return fmt.Errorf("%s: the generator does not know optional fields of proto3", f.GetName())
	}
	return nil
}

func hasProto3Optional(messages []*descriptorpb.DescriptorProto) bool {
	for _, m := range messages {
		for _, f := range m.Field {
			if f.GetProto3Optional() {
				return true
			}
		}
		if hasProto3Optional(m.NestedType) {
			return true
		}
	}
	return false
}

// place moves generated files into the module, checked as protoc checks them:
// no name twice, none that leads out.
func place(files []File, m *module) ([]File, error) {
	seen := map[string]bool{}
	var errs []error
	for i, f := range files {
		name, ok := m.outFile(f.Name)
		switch {
		case !ok || !filepath.IsLocal(filepath.FromSlash(name)):
			errs = append(errs, fmt.Errorf("generated file %s is not in module %s", f.Name, m.Path))
		case seen[name]:
			errs = append(errs, fmt.Errorf("generated file %s is generated twice", name))
		}
		seen[name] = true
		files[i].Name = name
	}
	return files, errors.Join(errs...)
}
