package codegen

import (
	"strings"

	"github.com/dave/jennifer/jen"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
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
		parts = append(parts, backstage("KeyField").Call(lit(p.Path()), e.keyValue(p), e.keySet(p)))
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
func (e *emitter) get(path []*protogen.Field) *jen.Statement {
	s := jen.Id("in")
	for _, f := range path {
		if name := e.getter(f); name != "" {
			s = s.Dot(name).Call()
		} else {
			s = e.reflected(s, f)
		}
	}
	return s
}

// getter names the getter that a field has in all builds, "" if none. A hybrid
// message whose fields are called id and get_id has two for id, Get_Id and
// GetId, of which only the one that an opaque message has, too, survives the
// build tag protoopaque. With get_id before id none does.
func (e *emitter) getter(f *protogen.Field) string {
	name, older := f.MethodName("Get")
	switch opaque := "Get" + strings.TrimPrefix(strings.TrimPrefix(name, "Get"), "_"); {
	case older == "", name == opaque:
		return name
	case older == opaque:
		e.deprecated = true
		return older
	}
	return ""
}

// reflected reads a field that has no getter in all builds.
func (e *emitter) reflected(s *jen.Statement, f *protogen.Field) *jen.Statement {
	reflect := func() *jen.Statement { return s.Clone().Dot("ProtoReflect").Call() }
	field := reflect().Dot("Descriptor").Call().Dot("Fields").Call().Dot("ByName").Call(lit(string(f.Desc.Name())))
	value := reflect().Dot("Get").Call(field)
	switch f.Desc.Kind() {
	case protoreflect.StringKind:
		return value.Dot("String").Call()
	case protoreflect.BoolKind:
		return value.Dot("Bool").Call()
	case protoreflect.EnumKind:
		return value.Dot("Enum").Call()
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return value.Dot("Message").Call().Dot("Interface").Call().Assert(e.message(f.Message))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return jen.Uint32().Call(value.Dot("Uint").Call())
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return value.Dot("Uint").Call()
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return jen.Int32().Call(value.Dot("Int").Call())
	}
	return value.Dot("Int").Call()
}

// keyValue is the field's value. Enums count as numbers, because their names
// may change.
func (e *emitter) keyValue(p KeyPart) jen.Code {
	for _, f := range p.Fields {
		e.deprecated = e.deprecated || fieldDeprecated(f)
	}
	if p.last().Desc.Kind() == protoreflect.EnumKind {
		return jen.Int32().Call(e.get(p.Fields))
	}
	return e.get(p.Fields)
}

func fieldDeprecated(f *protogen.Field) bool {
	return f.Desc.Options().(*descriptorpb.FieldOptions).GetDeprecated()
}

func (p KeyPart) last() *protogen.Field { return p.Fields[len(p.Fields)-1] }

// keySet says whether the field has a value. An empty string never is one, and
// zero only where the message can say that it was set; a bool always is, unless
// what it belongs to is not there.
func (e *emitter) keySet(p KeyPart) jen.Code {
	d, parent := p.last().Desc, p.Fields[:len(p.Fields)-1]
	isSet := func() *jen.Statement { return backstage("IsSet").Call(e.get(parent), lit(string(d.Name()))) }
	switch {
	case p.Optional:
		return jen.True()
	case d.Kind() == protoreflect.StringKind && d.HasDefault():
		return isSet().Op("&&").Add(e.get(p.Fields)).Op("!=").Add(lit(""))
	case d.Kind() == protoreflect.StringKind:
		return e.get(p.Fields).Op("!=").Add(lit(""))
	case d.HasPresence():
		return isSet()
	case d.Kind() == protoreflect.BoolKind && len(parent) > 0:
		return e.get(parent).Op("!=").Nil()
	case d.Kind() == protoreflect.BoolKind:
		return jen.True()
	}
	return e.get(p.Fields).Op("!=").Add(lit(0))
}
