package payload

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Mark stands where a secret would.
const Mark = "[redacted]"

// deepest is how far messages may lie within each other to be shown: readers of
// JSON have such bounds too.
const deepest = 1000

var errDeep = errors.New("its messages lie too deep within each other to be shown")

// encoder writes messages as JSON without their secrets. It is not protojson with
// fields taken out, because a mark stands in place of values of every type, and
// because bytes that nobody can look into must not be shown either.
type encoder struct {
	schema *Schema
	b      bytes.Buffer
	depth  int
}

// message writes a message.
func (e *encoder) message(m protoreflect.Message) error {
	if e.depth++; e.depth > deepest {
		return errDeep
	}
	defer func() { e.depth-- }()
	if m.Descriptor().FullName() == "google.protobuf.Any" {
		return e.any(m)
	}
	if text, ok := wellKnown(m); ok {
		e.b.Write(text)
		return nil
	}
	o := e.object()
	if err := e.fields(o, m); err != nil {
		return err
	}
	o.end()
	return nil
}

// wellKnown returns a message that has a form of its own in JSON. Such messages mark
// nothing; one that has fields of a newer version, or a value without such a form,
// is written as any other.
func wellKnown(m protoreflect.Message) ([]byte, bool) {
	if !hasOwnForm(m.Descriptor()) || len(m.GetUnknown()) > 0 {
		return nil, false
	}
	text, err := protojson.Marshal(m.Interface())
	if err != nil {
		return nil, false
	}
	var b bytes.Buffer
	err = json.Compact(&b, text) // protojson's white space is random
	return b.Bytes(), err == nil
}

func hasOwnForm(desc protoreflect.MessageDescriptor) bool {
	if !strings.HasPrefix(desc.ParentFile().Path(), "google/protobuf/") {
		return false
	}
	switch desc.FullName() {
	case "google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.FieldMask",
		"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue",
		"google.protobuf.BoolValue", "google.protobuf.BytesValue", "google.protobuf.StringValue",
		"google.protobuf.DoubleValue", "google.protobuf.FloatValue",
		"google.protobuf.Int32Value", "google.protobuf.Int64Value",
		"google.protobuf.UInt32Value", "google.protobuf.UInt64Value":
		return true
	}
	return false
}

// any writes a message of a type that it names.
func (e *encoder) any(m protoreflect.Message) error {
	fields := m.Descriptor().Fields()
	url := m.Get(fields.ByNumber(1)).String()
	value := m.Get(fields.ByNumber(2)).Bytes()
	o := e.object()
	o.key("@type")
	e.text(url)
	if err := e.inner(o, url, value); err != nil {
		return err
	}
	o.unknown(m)
	o.end()
	return nil
}

func (e *encoder) inner(o *object, url string, value []byte) error {
	t, err := e.schema.types.FindMessageByURL(url)
	if err != nil {
		o.number("@bytes", len(value))
		return nil
	}
	inner, err := e.schema.decode(t, value)
	if err != nil {
		o.number("@bytes", len(value))
		o.key("@undecodable")
		e.b.WriteString("true")
		return nil
	}
	if inner.Descriptor().FullName() == "google.protobuf.Any" || hasOwnForm(inner.Descriptor()) {
		o.key("value")
		return e.message(inner)
	}
	if e.depth++; e.depth > deepest {
		return errDeep
	}
	defer func() { e.depth-- }()
	return e.fields(o, inner)
}

// fields writes what is set, in the order of the declaration; extensions behind, by
// their names; then how many more there are.
func (e *encoder) fields(o *object, m protoreflect.Message) error {
	for _, field := range setFields(m) {
		name := field.JSONName()
		if field.IsExtension() {
			name = "[" + string(field.FullName()) + "]"
		}
		o.key(name)
		if err := e.field(field, m.Get(field)); err != nil {
			return err
		}
	}
	o.unknown(m)
	return nil
}

func setFields(m protoreflect.Message) []protoreflect.FieldDescriptor {
	var out, extensions []protoreflect.FieldDescriptor
	m.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if field.IsExtension() {
			extensions = append(extensions, field)
		} else {
			out = append(out, field)
		}
		return true
	})
	slices.SortFunc(out, func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.Index(), b.Index()) })
	slices.SortFunc(extensions, func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.FullName(), b.FullName()) })
	return append(out, extensions...)
}

// field writes the value of a field, or that there is one.
func (e *encoder) field(field protoreflect.FieldDescriptor, v protoreflect.Value) error {
	if options, ok := field.Options().(*descriptorpb.FieldOptions); !ok || options.GetDebugRedact() {
		e.text(Mark)
		return nil
	}
	switch {
	case field.IsMap():
		return e.entries(field.MapValue(), v.Map())
	case field.IsList():
		return e.list(field, v.List())
	}
	return e.value(field, v)
}

func (e *encoder) list(field protoreflect.FieldDescriptor, list protoreflect.List) error {
	e.b.WriteByte('[')
	for i := range list.Len() {
		if i > 0 {
			e.b.WriteByte(',')
		}
		if err := e.value(field, list.Get(i)); err != nil {
			return err
		}
	}
	e.b.WriteByte(']')
	return nil
}

// entries writes a map, sorted by its keys.
func (e *encoder) entries(value protoreflect.FieldDescriptor, m protoreflect.Map) error {
	var keys []protoreflect.MapKey
	m.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, key)
		return true
	})
	slices.SortFunc(keys, compareKeys)
	o := e.object()
	for _, key := range keys {
		o.key(key.String())
		if err := e.value(value, m.Get(key)); err != nil {
			return err
		}
	}
	o.end()
	return nil
}

func compareKeys(a, b protoreflect.MapKey) int {
	switch x := a.Interface().(type) {
	case int32, int64:
		return cmp.Compare(a.Int(), b.Int())
	case uint32, uint64:
		return cmp.Compare(a.Uint(), b.Uint())
	case string:
		return cmp.Compare(x, b.String())
	}
	return cmp.Compare(a.String(), b.String())
}

// value writes one value: a scalar as protojson does.
func (e *encoder) value(field protoreflect.FieldDescriptor, v protoreflect.Value) error {
	switch field.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return e.message(v.Message())
	case protoreflect.EnumKind:
		e.enum(field.Enum(), v.Enum())
	case protoreflect.StringKind:
		e.text(v.String())
	case protoreflect.BytesKind:
		e.text(base64.StdEncoding.EncodeToString(v.Bytes()))
	case protoreflect.FloatKind:
		e.float(v.Float(), 32)
	case protoreflect.DoubleKind:
		e.float(v.Float(), 64)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind,
		protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		e.text(v.String())
	default: // a bool, or a number of 32 bits
		e.b.WriteString(v.String())
	}
	return nil
}

func (e *encoder) enum(desc protoreflect.EnumDescriptor, n protoreflect.EnumNumber) {
	value := desc.Values().ByNumber(n)
	switch {
	case desc.FullName() == "google.protobuf.NullValue":
		e.b.WriteString("null")
	case value == nil:
		e.b.WriteString(strconv.Itoa(int(n)))
	case marked(desc, n):
		e.text(Mark)
	default:
		e.text(string(value.Name()))
	}
}

// marked reports whether one of the names of an enum's number is marked.
func marked(desc protoreflect.EnumDescriptor, n protoreflect.EnumNumber) bool {
	for i := range desc.Values().Len() {
		value := desc.Values().Get(i)
		options, ok := value.Options().(*descriptorpb.EnumValueOptions)
		if value.Number() == n && (!ok || options.GetDebugRedact()) {
			return true
		}
	}
	return false
}

func (e *encoder) float(f float64, bits int) {
	switch {
	case math.IsNaN(f):
		e.text("NaN")
	case math.IsInf(f, 1):
		e.text("Infinity")
	case math.IsInf(f, -1):
		e.text("-Infinity")
	default:
		e.b.WriteString(strconv.FormatFloat(f, 'g', -1, bits))
	}
}

// text writes a string.
func (e *encoder) text(s string) {
	enc := json.NewEncoder(&e.b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(strings.ToValidUTF8(s, "\ufffd")) // a string in memory
	e.b.Truncate(e.b.Len() - 1)                      // the encoder ends lines
}

// object writes the members of a JSON object.
type object struct {
	e     *encoder
	begun bool
}

func (e *encoder) object() *object {
	e.b.WriteByte('{')
	return &object{e: e}
}

func (o *object) key(name string) {
	if o.begun {
		o.e.b.WriteByte(',')
	}
	o.begun = true
	o.e.text(name)
	o.e.b.WriteByte(':')
}

func (o *object) number(name string, n int) {
	o.key(name)
	fmt.Fprint(&o.e.b, n)
}

// unknown writes how many fields there are that the schema does not know.
func (o *object) unknown(m protoreflect.Message) {
	n := 0
	for rest := m.GetUnknown(); len(rest) > 0; n++ {
		_, _, size := protowire.ConsumeField(rest)
		if size < 0 {
			break // cannot be: the bytes were parsed once
		}
		rest = rest[size:]
	}
	if n > 0 {
		o.number("@unknown_fields", n)
	}
}

func (o *object) end() { o.e.b.WriteByte('}') }
