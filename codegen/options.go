package codegen

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	backstagev1 "github.com/backstage-go/backstage/schema/backstage/v1"
)

// OptionsPath is the one path by which schemas import the options.
const OptionsPath = "backstage/v1/options.proto"

// isTaskService says whether every rpc of a service is a task: when it carries
// defaults, or one of its rpcs carries task.
func isTaskService(s *protogen.Service) bool {
	if proto.HasExtension(s.Desc.Options(), backstagev1.E_Defaults) {
		return true
	}
	for _, m := range s.Methods {
		if proto.HasExtension(m.Desc.Options(), backstagev1.E_Task) {
			return true
		}
	}
	return false
}

// An optionSet is the options of one service or task as they were written.
// Services and tasks have messages of their own whose fields are named alike,
// so they are read by name.
type optionSet struct {
	from Origin
	// who is what diagnostics begin with: "task ChargeCard".
	who     string
	message protoreflect.Message
	file    *protogen.File
	element protogen.Location
	path    []int32
}

func serviceOptionSet(file *protogen.File, s *protogen.Service) optionSet {
	set, _ := proto.GetExtension(s.Desc.Options(), backstagev1.E_Defaults).(*backstagev1.ServiceOptions)
	return optionSet{
		from:    FromService,
		who:     "service " + string(s.Desc.Name()),
		message: set.ProtoReflect(),
		file:    file,
		element: s.Location,
		path:    []int32{serviceOptions, int32(backstagev1.E_Defaults.TypeDescriptor().Number())},
	}
}

func taskOptionSet(file *protogen.File, m *protogen.Method) optionSet {
	set, _ := proto.GetExtension(m.Desc.Options(), backstagev1.E_Task).(*backstagev1.TaskOptions)
	return optionSet{
		from:    FromTask,
		who:     "task " + string(m.Desc.Name()),
		message: set.ProtoReflect(),
		file:    file,
		element: m.Location,
		path:    []int32{methodOptions, int32(backstagev1.E_Task.TypeDescriptor().Number())},
	}
}

// text returns an option's value and whether it was set.
func (o optionSet) text(name protoreflect.Name) (string, bool) {
	field := o.field(name)
	if field == nil || !o.message.Has(field) {
		return "", false
	}
	return o.message.Get(field).String(), true
}

// texts returns the values of a repeated option.
func (o optionSet) texts(name protoreflect.Name) []string {
	list := o.message.Get(o.field(name)).List()
	out := make([]string, list.Len())
	for i := range out {
		out[i] = list.Get(i).String()
	}
	return out
}

func (o optionSet) field(name protoreflect.Name) protoreflect.FieldDescriptor {
	return o.message.Descriptor().Fields().ByName(name)
}

// at returns the place of an option, or of one value of a repeated option.
func (o optionSet) at(name protoreflect.Name, index ...int) Position {
	path := append([]int32{}, o.path...)
	path = append(path, int32(o.field(name).Number()))
	for _, i := range index {
		path = append(path, int32(i))
	}
	return positionIn(o.file, o.element, path...)
}

// reportOption reports what is wrong with the value of an option. Without a
// narrower piece the value itself is underlined.
func (l *loader) reportOption(o optionSet, name protoreflect.Name, value string, c complaint, index ...int) {
	l.report(o.at(name, index...), o.complaint(name, value, c))
}

func (o optionSet) complaint(name protoreflect.Name, value string, c complaint) complaint {
	c.message = fmt.Sprintf("%s: %s: %s", o.who, name, c.message)
	if c.near == "" {
		c.near = value
		if o.field(name).Kind() == protoreflect.StringKind {
			c.near = `"` + value + `"`
		}
	}
	return c
}

// badName says why a name for something at run time cannot be used, "" if it
// can.
func badName(s string) string {
	switch {
	case s == "":
		return "an empty name"
	case len(s) > 200:
		return fmt.Sprintf("a name of %d bytes; at most 200", len(s))
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return fmt.Sprintf("%q has a space or a character that is not plain ASCII", s)
	}
	return ""
}
