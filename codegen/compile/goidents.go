package compile

import (
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/gofeaturespb"

	"github.com/backstage-go/backstage/codegen"
)

// goIdents checks that all that protoc-gen-go declares for messages and enums has
// a Go name of its own in its package: my_message and MyMessage are two names in
// protobuf and one in Go, and Go knows no scopes of enums.
func goIdents(files []*protogen.File) codegen.Diagnostics {
	c := &identChecker{have: map[protogen.GoIdent]ident{}}
	for _, f := range files {
		c.file, c.generate = f, f.Generate
		c.messages(f.Messages)
		c.enums(f.Enums)
		c.extensions(f.Extensions)
	}
	return c.found
}

type identChecker struct {
	file     *protogen.File
	generate bool
	have     map[protogen.GoIdent]ident
	found    codegen.Diagnostics
}

// An ident is who declares a Go name, and where.
type ident struct {
	name protoreflect.FullName
	pos  codegen.Position
}

func (c *identChecker) messages(list []*protogen.Message) {
	for _, m := range list {
		if m.Desc.IsMapEntry() {
			continue
		}
		c.declare(m.GoIdent, m.Desc, m.Location)
		c.messages(m.Messages)
		c.enums(m.Enums)
		c.extensions(m.Extensions)
		c.fields(m)
	}
}

// fields also finds the one name that protoc-gen-go does not keep for itself.
func (c *identChecker) fields(m *protogen.Message) {
	inStruct := func(goName string, desc protoreflect.Descriptor, at protogen.Location) {
		if goName == "ProtoReflect" && c.generate && m.APILevel != gofeaturespb.GoFeatures_API_OPAQUE {
			c.found = append(c.found, codegen.Diagnostic{
				Pos:     c.nameOf(at),
				Message: fmt.Sprintf("%s is ProtoReflect in Go, which is a method of every message", desc.FullName()),
			})
		}
	}
	for _, f := range m.Fields {
		if f.Oneof != nil && !f.Oneof.Desc.IsSynthetic() {
			c.declare(f.GoIdent, f.Desc, f.Location)
		} else {
			inStruct(f.GoName, f.Desc, f.Location)
		}
	}
	for _, o := range m.Oneofs {
		if !o.Desc.IsSynthetic() {
			inStruct(o.GoName, o.Desc, o.Location)
		}
	}
}

func (c *identChecker) enums(list []*protogen.Enum) {
	for _, e := range list {
		c.declare(e.GoIdent, e.Desc, e.Location)
		for _, v := range e.Values {
			c.declare(v.GoIdent, v.Desc, v.Location)
		}
	}
}

func (c *identChecker) extensions(list []*protogen.Extension) {
	for _, x := range list {
		name := x.GoIdent
		name.GoName = "E_" + name.GoName
		c.declare(name, x.Desc, x.Location)
	}
}

func (c *identChecker) declare(name protogen.GoIdent, desc protoreflect.Descriptor, at protogen.Location) {
	mine := ident{desc.FullName(), c.nameOf(at)}
	other, taken := c.have[name]
	if !taken {
		c.have[name] = mine
		return
	}
	if c.generate {
		c.found = append(c.found, codegen.Diagnostic{
			Pos:     mine.pos,
			Message: fmt.Sprintf("%s is %s in Go, and so is %s", mine.name, name.GoName, other.name),
			Other:   other.pos,
		})
	}
}

// nameOf is the place of a declaration's name.
func (c *identChecker) nameOf(at protogen.Location) codegen.Position {
	return placeOf(c.file.Proto, append(append([]int32{}, at.Path...), 1))
}
