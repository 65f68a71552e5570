package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/backstage-go/backstage/codegen"
	backstagev1 "github.com/backstage-go/backstage/schema/backstage/v1"
)

// Schema knows the messages of tasks.
type Schema struct {
	tasks map[string]protoreflect.MessageDescriptor // by each name on the wire
	types *dynamicpb.Types
}

// New returns the schema of a descriptor set. It fails for a set that is not
// complete, or that has no rpc.
func New(set *descriptorpb.FileDescriptorSet) (*Schema, error) {
	if err := complete(set); err != nil {
		return nil, err
	}
	set, err := linked(set)
	if err != nil {
		return nil, err
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, err
	}
	s := &Schema{tasks: map[string]protoreflect.MessageDescriptor{}, types: dynamicpb.NewTypes(files)}
	s.addTasks(files)
	if len(s.tasks) == 0 {
		return nil, fmt.Errorf("the schema declares no task: none of its %d files has a service", files.NumFiles())
	}
	return s, nil
}

// linked returns a set whose options are those of this program. In one that was just
// compiled they are messages of the schema's own.
func linked(set *descriptorpb.FileDescriptorSet) (*descriptorpb.FileDescriptorSet, error) {
	b, err := proto.Marshal(set)
	if err != nil {
		return nil, err
	}
	out := &descriptorpb.FileDescriptorSet{}
	return out, proto.Unmarshal(b, out)
}

// complete says what of a set is missing, as the library does not.
func complete(set *descriptorpb.FileDescriptorSet) error {
	have := map[string]bool{}
	for _, f := range set.GetFile() {
		have[f.GetName()] = true
	}
	for _, f := range set.GetFile() {
		for _, name := range f.GetDependency() {
			if !have[name] {
				return fmt.Errorf("it has %s but not %s, which that imports; write it with: buf build -o image.binpb, or protoc --include_imports", f.GetName(), name)
			}
		}
	}
	return nil
}

// addTasks takes every rpc for a task, under its names on the wire. A name wins
// over an alias: that is the one under which new jobs are made.
func (s *Schema) addTasks(files *protoregistry.Files) {
	aliases := map[string]protoreflect.MessageDescriptor{}
	files.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				method := methods.Get(j)
				options, _ := proto.GetExtension(method.Options(), backstagev1.E_Task).(*backstagev1.TaskOptions)
				name := string(method.FullName())
				if options.GetName() != "" {
					name = options.GetName()
				}
				s.tasks[name] = method.Input()
				for _, alias := range options.GetAliases() {
					aliases[alias] = method.Input()
				}
			}
		}
		return true
	})
	for alias, message := range aliases {
		if s.tasks[alias] == nil {
			s.tasks[alias] = message
		}
	}
}

// Shown is a payload as it may be seen.
type Shown struct {
	// Message is the full name of the payload's message.
	Message string
	// JSON is the message, on one line.
	JSON json.RawMessage
}

// Show decodes the payload of a task. It fails for a task that the schema does not
// have, and for bytes that are not its message; the error has nothing of them.
func (s *Schema) Show(task string, payload []byte) (Shown, error) {
	desc := s.tasks[task]
	if desc == nil {
		return Shown{}, s.unknown(task)
	}
	shown := Shown{Message: string(desc.FullName())}
	message, err := s.decode(dynamicpb.NewMessageType(desc), payload)
	if err != nil {
		return shown, fmt.Errorf("it is no %s: %s", shown.Message, plain(err))
	}
	e := &encoder{schema: s}
	if err := e.message(message); err != nil {
		return shown, err
	}
	shown.JSON = e.b.Bytes()
	return shown, nil
}

func (s *Schema) decode(t protoreflect.MessageType, payload []byte) (protoreflect.Message, error) {
	message := t.New()
	err := proto.UnmarshalOptions{AllowPartial: true, Resolver: s.types}.Unmarshal(payload, message.Interface())
	return message, err
}

// plain takes off what the library puts in front of its errors, with a blank that is
// not always the same.
func plain(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
}

func (s *Schema) unknown(task string) error {
	text := fmt.Sprintf("the schema has no task %q", task)
	if near := codegen.Nearest(task, slices.Sorted(maps.Keys(s.tasks))); near != "" {
		text += fmt.Sprintf("; the nearest is %q", near)
	}
	return errors.New(text)
}
