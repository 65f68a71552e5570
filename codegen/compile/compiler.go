package compile

import (
	"context"
	"errors"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/options"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/backstage-go/backstage/codegen"
)

// compileSources links the schemas and returns the request that a plugin would
// get from protoc for them.
func compileSources(ctx context.Context, r *resolver, c *collector) (*pluginpb.CodeGeneratorRequest, codegen.Diagnostics, error) {
	compiler := protocompile.Compiler{
		Resolver:       r,
		Reporter:       c.reporter(),
		SourceInfoMode: protocompile.SourceInfoStandard | protocompile.SourceInfoExtraOptionLocations,
	}
	files, err := compiler.Compile(ctx, r.sources.names()...)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	var crash protocompile.PanicError
	if errors.As(err, &crash) {
		return nil, append(advise(c.found, r.sources), r.sources.crashed(crash)...), nil
	}
	c.add(err)
	if len(c.found) > 0 {
		return nil, advise(c.found, r.sources), nil
	}
	if c.other != nil {
		return nil, nil, c.other
	}
	q := &requester{sources: r.sources, seen: map[string]bool{}, request: &pluginpb.CodeGeneratorRequest{}}
	for _, file := range files {
		if err := q.add(file); err != nil {
			return nil, nil, err
		}
	}
	return q.request, q.found, nil
}

// A requester collects files for a request as protoc does: a file after what it
// imports, without the options that only the source is to have.
type requester struct {
	sources sources
	seen    map[string]bool
	request *pluginpb.CodeGeneratorRequest
	found   codegen.Diagnostics
}

func (q *requester) add(file protoreflect.FileDescriptor) error {
	if q.seen[file.Path()] {
		return nil
	}
	q.seen[file.Path()] = true
	list := file.Imports()
	for i := range list.Len() {
		if err := q.add(list.Get(i).FileDescriptor); err != nil {
			return err
		}
	}
	desc := protoOf(file)
	q.found = append(q.found, invalidText(desc)...)
	if q.sources[file.Path()] == nil {
		q.request.ProtoFile = append(q.request.ProtoFile, desc)
		return nil
	}
	stripped, err := options.StripSourceRetentionOptionsFromFile(desc)
	if err != nil {
		return err
	}
	q.request.FileToGenerate = append(q.request.FileToGenerate, file.Path())
	q.request.ProtoFile = append(q.request.ProtoFile, stripped)
	q.request.SourceFileDescriptors = append(q.request.SourceFileDescriptors, desc)
	return nil
}

func protoOf(file protoreflect.FileDescriptor) *descriptorpb.FileDescriptorProto {
	if result, ok := file.(linker.Result); ok {
		return result.FileDescriptorProto()
	}
	return protoutil.ProtoFromFileDescriptor(file)
}
