package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/backstage-go/backstage/cmd/backstagectl/internal/payload"
	"github.com/backstage-go/backstage/codegen/compile"
	"github.com/backstage-go/backstage/internal/command"
)

// schemaSource is where the schema of payloads is.
type schemaSource struct {
	set             string
	protos, imports []string
}

func schemaFlags(set *flag.FlagSet) *schemaSource {
	s := &schemaSource{}
	list := func(into *[]string) func(string) error {
		return func(text string) error {
			*into = append(*into, text)
			return nil
		}
	}
	set.StringVar(&s.set, "schema", "", "decode payloads by a descriptor set: the `file` that buf build -o, or protoc\n--include_imports -o, wrote")
	set.Func("proto", "decode payloads by a .proto `file`, or all in a folder; may be repeated", list(&s.protos))
	set.Func("I", "`folder` that imports of -proto are found in; may be repeated", list(&s.imports))
	return s
}

// load returns the schema, nil if none is given.
func (s *schemaSource) load(ctx context.Context, c *command.Console) (*payload.Schema, error) {
	var set *descriptorpb.FileDescriptorSet
	name := s.set
	var err error
	switch {
	case s.set != "" && s.protos != nil:
		return nil, command.Usagef("give -schema or -proto, and not both")
	case s.imports != nil && s.protos == nil:
		return nil, command.Usagef("-I serves -proto, which is not given")
	case s.set != "":
		set, err = readSet(s.set)
	case s.protos != nil:
		name = "-proto"
		set, err = s.compile(ctx, c)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	schema, err := payload.New(set)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return schema, nil
}

func readSet(name string) (*descriptorpb.FileDescriptorSet, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("-schema: %w", err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(b, set); err != nil || len(set.GetFile()) == 0 {
		return nil, fmt.Errorf("-schema: %s is no descriptor set; write one with: buf build -o image.binpb (-proto takes .proto files)", name)
	}
	return set, nil
}

// compile compiles sources, and prints what is wrong with them.
func (s *schemaSource) compile(ctx context.Context, c *command.Console) (*descriptorpb.FileDescriptorSet, error) {
	set, found, err := compile.Descriptors(ctx, s.protos, s.imports)
	if err != nil {
		return nil, fmt.Errorf("-proto: %w", err)
	}
	if len(found) == 0 {
		return set, nil
	}
	err = found.Render(c.Err, func(file string) (string, bool) {
		text, err := os.ReadFile(file)
		return string(text), err == nil
	})
	if err == nil {
		err = command.ErrShown
	}
	return nil, err
}
