package compile

import (
	"errors"
	"fmt"
	"path/filepath"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// newPlugin makes what a plugin would have read from protoc. The request goes
// through bytes, because the compiler leaves options in messages of its own
// making, and only reading them again gives those that Go code knows.
func newPlugin(request *pluginpb.CodeGeneratorRequest) (*protogen.Plugin, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		return nil, err
	}
	fresh := &pluginpb.CodeGeneratorRequest{}
	if err := proto.Unmarshal(b, fresh); err != nil {
		return nil, err
	}
	return protogen.Options{}.New(fresh)
}

// runPlugin runs a generator and checks its response as protoc does.
func runPlugin(name string, gen *protogen.Plugin, generate func(*protogen.Plugin) error) (_ []File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s panicked: %v", name, r)
		}
	}()
	if err := generate(gen); err != nil {
		return nil, err
	}
	response := gen.Response()
	if response.Error != nil {
		return nil, fmt.Errorf("%s: %s", name, response.GetError())
	}
	if err := checkSupport(gen.Request, response); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	files := make([]File, len(response.File))
	for i, f := range response.File {
		files[i] = File{Name: f.GetName(), Content: f.GetContent()}
	}
	return files, nil
}

// checkSupport refuses schemas that need what the generator does not know.
func checkSupport(request *pluginpb.CodeGeneratorRequest, response *pluginpb.CodeGeneratorResponse) error {
	byName := map[string]*descriptorpb.FileDescriptorProto{}
	for _, f := range request.ProtoFile {
		byName[f.GetName()] = f
	}
	for _, name := range request.FileToGenerate {
		if err := checkFileSupport(byName[name], response); err != nil {
			return err
		}
	}
	return nil
}

func checkFileSupport(f *descriptorpb.FileDescriptorProto, response *pluginpb.CodeGeneratorResponse) error {
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
			errs = append(errs, fmt.Errorf("generated file %s is not in module %s", f.Name, m.path))
		case seen[name]:
			errs = append(errs, fmt.Errorf("generated file %s is generated twice", name))
		}
		seen[name] = true
		files[i].Name = name
	}
	return files, errors.Join(errs...)
}
