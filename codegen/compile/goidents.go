package compile

import (
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"

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
		for _, f := range m.Fields {
			if f.Oneof != nil && !f.Oneof.Desc.IsSynthetic() {
				c.declare(f.GoIdent, f.Desc, f.Location)
			}
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
	mine := ident{desc.FullName(), placeOf(c.file.Proto, append(append([]int32{}, at.Path...), 1))}
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
