package codegen

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxKeyPath bounds the fields of one path, so that a path through a recursive
// message ends.
const maxKeyPath = 8

// A Key is a key template, resolved against the payload of its task.
type Key struct {
	// Text is the template as written.
	Text  string
	Parts []KeyPart
}

// A KeyPart is literal text, or the value of a field.
type KeyPart struct {
	Literal string
	// Fields leads from the payload to the field; nil for a literal.
	Fields []*protogen.Field
	// Optional parts may be empty: {name?}.
	Optional bool
}

// Path returns the field's path as the template has it: "customer.id".
func (p KeyPart) Path() string {
	names := make([]string, len(p.Fields))
	for i, f := range p.Fields {
		names[i] = string(f.Desc.Name())
	}
	return strings.Join(names, ".")
}

// A complaint is something wrong with a part of a text, for the diagnostic that
// points at the text as a whole.
type complaint struct {
	message string
	near    string
	hint    string
	// other is a second place that the message ends with.
	other Position
}

func (c complaint) at(s Severity, pos Position) Diagnostic {
	return Diagnostic{Severity: s, Pos: pos, Message: c.message, Other: c.other, Near: c.near, Hint: c.hint}
}

// resolveKey compiles a template. It returns what is wrong with it and what is
// only odd.
func resolveKey(text string, payload *protogen.Message) (key *Key, wrong, odd []complaint) {
	segments, err := parseTemplate(text)
	if err != nil {
		return nil, []complaint{syntaxComplaint(err)}, nil
	}
	if len(segments) == 0 {
		return nil, []complaint{{message: "an empty key"}}, nil
	}
	key = &Key{Text: text}
	seen := map[string]bool{}
	for _, s := range segments {
		if s.path == nil {
			key.Parts = append(key.Parts, KeyPart{Literal: s.literal})
			continue
		}
		if seen[s.source()] {
			wrong = append(wrong, complaint{message: fmt.Sprintf("{%s} stands twice", s.source()), near: "{" + s.source()})
			continue
		}
		seen[s.source()] = true
		fields, c := resolvePath(s.path, payload)
		if c != nil {
			wrong = append(wrong, *c)
			continue
		}
		odd = append(odd, deprecatedFields(fields)...)
		key.Parts = append(key.Parts, KeyPart{Fields: fields, Optional: s.optional})
	}
	if len(seen) == 0 && len(payload.Fields) > 0 {
		odd = append(odd, complaint{message: "the key names no field, so all jobs share it"})
	}
	return key, wrong, odd
}

func syntaxComplaint(err error) complaint {
	c := complaint{message: err.Error()}
	if se, ok := err.(*syntaxError); ok {
		c.near = se.near
	}
	return c
}

func deprecatedFields(fields []*protogen.Field) []complaint {
	var out []complaint
	for _, f := range fields {
		if fieldDeprecated(f) {
			out = append(out, complaint{
				message: fmt.Sprintf("field %q is deprecated", f.Desc.FullName()),
				near:    string(f.Desc.Name()),
			})
		}
	}
	return out
}

func resolvePath(path []string, payload *protogen.Message) ([]*protogen.Field, *complaint) {
	if len(path) > maxKeyPath {
		return nil, &complaint{
			message: fmt.Sprintf("{%s} has %d fields; at most %d", strings.Join(path, "."), len(path), maxKeyPath),
			near:    strings.Join(path, "."),
		}
	}
	var fields []*protogen.Field
	message := payload
	for i, name := range path {
		field, c := findField(name, message)
		if c == nil {
			c = unfitForKey(field, path[:i+1], i == len(path)-1)
		}
		if c != nil {
			return nil, c
		}
		fields = append(fields, field)
		message = field.Message
	}
	return fields, nil
}

func findField(name string, message *protogen.Message) (*protogen.Field, *complaint) {
	var names []string
	c := &complaint{message: fmt.Sprintf("%s has no field %q", message.Desc.FullName(), name), near: name}
	for _, f := range message.Fields {
		if addressedBy(f, name) {
			return f, nil
		}
		names = append(names, string(f.Desc.Name()))
		if f.Desc.JSONName() == name {
			c.hint = fmt.Sprintf("did you mean %q?", f.Desc.Name())
		}
	}
	if c.hint == "" {
		c.hint = didYouMean(name, names)
	}
	if message.Desc.Oneofs().ByName(protoreflect.Name(name)) != nil {
		c.message = fmt.Sprintf("%q is a oneof, of which any member may be unset", name)
	}
	return nil, c
}

// addressedBy also knows a proto2 group by the name of its message, so that the
// complaint about it is that it is a group.
func addressedBy(f *protogen.Field, name string) bool {
	if string(f.Desc.Name()) == name {
		return true
	}
	return isGroup(f) && string(f.Desc.Message().Name()) == name
}

// isGroup says whether a field is a group of proto2. Editions have ordinary fields
// that only look like one on the wire.
func isGroup(f *protogen.Field) bool {
	return f.Desc.Kind() == protoreflect.GroupKind && f.Desc.ParentFile().Syntax() == protoreflect.Proto2
}

// unfitForKey says why the field at the end of a path cannot stand in a key, nil
// if it can.
func unfitForKey(f *protogen.Field, path []string, last bool) *complaint {
	name, d := string(f.Desc.Name()), f.Desc
	bad := func(format string, args ...any) *complaint {
		return &complaint{message: fmt.Sprintf("%q ", name) + fmt.Sprintf(format, args...), near: name}
	}
	switch {
	case d.IsMap():
		return bad("is a map")
	case d.IsList():
		return bad("is repeated")
	case isGroup(f):
		return bad("is a group, which a key cannot reach into")
	case d.ContainingOneof() != nil && !d.ContainingOneof().IsSynthetic():
		return bad("is a member of oneof %q and may be unset, so two members would share a key", d.ContainingOneof().Name())
	case !last && f.Message == nil:
		return bad("is not a message")
	case !last:
		return nil
	case f.Message != nil:
		return unfitMessage(f, strings.Join(path, "."), bad)
	}
	return unfitScalar(d.Kind(), bad)
}

func unfitMessage(f *protogen.Field, path string, bad func(string, ...any) *complaint) *complaint {
	full := f.Message.Desc.FullName()
	c := bad("is a message; name one of its fields")
	switch {
	case full == "google.protobuf.BytesValue", full == "google.protobuf.FloatValue", full == "google.protobuf.DoubleValue":
		return bad("is a %s, which has no exact text; use a string or integer field", full)
	case strings.HasPrefix(string(full), "google.protobuf.") && strings.HasSuffix(string(full), "Value") && len(f.Message.Fields) == 1 && full != "google.protobuf.ListValue":
		c.hint = fmt.Sprintf("did you mean {%s.value}?", path)
	case full.Parent() == "google.protobuf":
		return bad("is a %s, which a key cannot hold; use a string or integer field", full)
	}
	return c
}

func unfitScalar(kind protoreflect.Kind, bad func(string, ...any) *complaint) *complaint {
	switch kind {
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return bad("is a %s, which has no exact text; use an integer or string field", kind)
	case protoreflect.BytesKind:
		return bad("is bytes; use a string field")
	}
	return nil
}
