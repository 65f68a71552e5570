package codegen

import (
	"strings"

	"github.com/dave/jennifer/jen"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// key writes the function that makes a key of a payload. It only uses getters,
// so that it reads alike for the open, the hybrid and the opaque API.
func (e *emitter) key(t *Task, k *Key) jen.Code {
	var parts []jen.Code
	hasField := false
	for _, p := range k.Parts {
		if p.Fields == nil {
			parts = append(parts, backstage("KeyText").Call(lit(p.Literal)))
			continue
		}
		hasField = true
		parts = append(parts, backstage("KeyField").Call(lit(p.Path()), keyValue(p), keySet(p)))
	}
	results := []jen.Code{jen.String(), jen.Error()}
	if !hasField {
		return jen.Func().Params(e.message(t.Payload)).Params(results...).
			Add(inline(jen.Return(backstage("JoinKey").Call(parts...))))
	}
	return jen.Func().Params(jen.Id("in").Add(e.message(t.Payload))).Params(results...).
		Block(jen.Return(backstage("JoinKey").Add(args(parts...))))
}

// get reads the field at the end of a path. Getters accept nil, so a chain
// through an unset message ends in a zero value.
func get(path []*protogen.Field) *jen.Statement {
	s := jen.Id("in")
	for _, f := range path {
		s = s.Dot(getter(f)).Call()
	}
	return s
}

// getter names a field's getter. A hybrid message whose fields are called id and
// get_id has two for id, Get_Id and GetId, of which only the one that an opaque
// message has, too, survives the build tag protoopaque.
func getter(f *protogen.Field) string {
	name, older := f.MethodName("Get")
	if opaque := "Get" + strings.TrimPrefix(strings.TrimPrefix(name, "Get"), "_"); older == opaque {
		return older
	}
	return name
}

// keyValue is the field's value. Enums count as numbers, because their names
// may change.
func keyValue(p KeyPart) jen.Code {
	if p.last().Desc.Kind() == protoreflect.EnumKind {
		return jen.Int32().Call(get(p.Fields))
	}
	return get(p.Fields)
}

func (p KeyPart) last() *protogen.Field { return p.Fields[len(p.Fields)-1] }

// keySet says whether the field has a value. An empty string never is one, and
// zero only where the message can say that it was set; a bool always is, unless
// what it belongs to is not there.
func keySet(p KeyPart) jen.Code {
	d, parent := p.last().Desc, p.Fields[:len(p.Fields)-1]
	isSet := func() *jen.Statement { return backstage("IsSet").Call(get(parent), lit(string(d.Name()))) }
	switch {
	case p.Optional:
		return jen.True()
	case d.Kind() == protoreflect.StringKind && d.HasDefault():
		return isSet().Op("&&").Add(get(p.Fields)).Op("!=").Add(lit(""))
	case d.Kind() == protoreflect.StringKind:
		return get(p.Fields).Op("!=").Add(lit(""))
	case d.HasPresence():
		return isSet()
	case d.Kind() == protoreflect.BoolKind && len(parent) > 0:
		return get(parent).Op("!=").Nil()
	case d.Kind() == protoreflect.BoolKind:
		return jen.True()
	}
	return get(p.Fields).Op("!=").Add(lit(0))
}
