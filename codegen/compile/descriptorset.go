package compile

import (
	"fmt"
	"os"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// requestOfSet makes a request of a descriptor set that buf or protoc wrote
// (--include_imports). Schemas whose go_package is in the module are generated;
// the set does not say more about which of them are only imported.
func requestOfSet(name string, m *module) (*pluginpb.CodeGeneratorRequest, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(b, set); err != nil {
		return nil, fmt.Errorf("%s is no descriptor set; write one with: buf build -o image.binpb: %w", name, err)
	}
	request := &pluginpb.CodeGeneratorRequest{ProtoFile: set.File}
	have := map[string]bool{}
	for _, f := range set.File {
		for _, dep := range f.Dependency {
			if !have[dep] {
				return nil, fmt.Errorf("%s has %s but not %s, which it imports; write it with: buf build -o image.binpb, or protoc --include_imports", name, f.GetName(), dep)
			}
		}
		have[f.GetName()] = true
		importPath, _, _ := strings.Cut(f.GetOptions().GetGoPackage(), ";")
		if importPath == m.Path || strings.HasPrefix(importPath, m.Path+"/") {
			request.FileToGenerate = append(request.FileToGenerate, f.GetName())
			request.SourceFileDescriptors = append(request.SourceFileDescriptors, f)
		}
	}
	if len(request.FileToGenerate) == 0 {
		return nil, fmt.Errorf("%s has no schema whose go_package is in module %s", name, m.Path)
	}
	return request, nil
}
