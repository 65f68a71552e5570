package payload_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/backstage-go/backstage/cmd/backstagectl/internal/payload"
	"github.com/backstage-go/backstage/codegen/compile"
)

// rig is the schemas of testdata.
type rig struct {
	schema *payload.Schema
	types  *dynamicpb.Types
	set    *descriptorpb.FileDescriptorSet
}

func open(t *testing.T) *rig {
	t.Helper()
	set, found, err := compile.Descriptors(t.Context(), []string{"testdata"}, nil)
	if err != nil || len(found) > 0 {
		t.Fatalf("%v\n%v", err, found)
	}
	schema, err := payload.New(set)
	if err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{schema, dynamicpb.NewTypes(files), set}
}

func (r *rig) message(t *testing.T, name protoreflect.FullName) *dynamicpb.Message {
	t.Helper()
	mt, err := r.types.FindMessageByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return mt.New().Interface().(*dynamicpb.Message)
}

// bytes is a message that is given as text.
func (r *rig) bytes(t *testing.T, name protoreflect.FullName, text string) []byte {
	t.Helper()
	m := r.message(t, name)
	if err := (prototext.UnmarshalOptions{Resolver: r.types}).Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return marshal(t, m)
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (r *rig) show(t *testing.T, task string, b []byte) string {
	t.Helper()
	shown, err := r.schema.Show(task, b)
	if err != nil {
		t.Fatalf("%s: %v", task, err)
	}
	return string(shown.JSON)
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	r := open(t)
	const charge, old = "shop.v1.OrderTasks.Charge", "old.v1.OldTasks.Run"
	for name, c := range map[string]struct{ task, message, text, want string }{
		"a scalar":             {charge, "shop.v1.Order", `order_id:"A" pin:"SECRET"`, `{"orderId":"A","pin":"[redacted]"}`},
		"nothing":              {charge, "shop.v1.Order", `order_id:"A"`, `{"orderId":"A"}`},
		"empty":                {charge, "shop.v1.Order", ``, `{}`},
		"a number":             {charge, "shop.v1.Order", `amount:424242`, `{"amount":"[redacted]"}`},
		"a bool with presence": {charge, "shop.v1.Order", `vip:false`, `{"vip":"[redacted]"}`},
		"bytes":                {charge, "shop.v1.Order", `blob:"SECRET"`, `{"blob":"[redacted]"}`},
		"a time":               {charge, "shop.v1.Order", `at:{seconds:424242}`, `{"at":"[redacted]"}`},
		"in a message":         {charge, "shop.v1.Order", `card:{holder:"Ann" number:"SECRET" spare:{number:"SECRET"}}`, `{"card":{"holder":"Ann","number":"[redacted]","spare":{"number":"[redacted]"}}}`},
		"in a list":            {charge, "shop.v1.Order", `cards:{number:"SECRET"} cards:{holder:"Bob"}`, `{"cards":[{"number":"[redacted]"},{"holder":"Bob"}]}`},
		"in a map":             {charge, "shop.v1.Order", `by_name:{key:"b" value:{number:"SECRET"}} by_name:{key:"a" value:{holder:"Ann"}}`, `{"byName":{"a":{"holder":"Ann"},"b":{"number":"[redacted]"}}}`},
		"a map":                {charge, "shop.v1.Order", `tokens:{key:"SECRET" value:"SECRET"} tokens:{key:"SECRET 2" value:"SECRET"}`, `{"tokens":"[redacted]"}`},
		"a list":               {charge, "shop.v1.Order", `answers:"SECRET" answers:"SECRET"`, `{"answers":"[redacted]"}`},
		"a message":            {charge, "shop.v1.Order", `hidden:{holder:"SECRET"}`, `{"hidden":"[redacted]"}`},
		"in a oneof":           {charge, "shop.v1.Order", `iban:"SECRET"`, `{"iban":"[redacted]"}`},
		"beside a oneof":       {charge, "shop.v1.Order", `voucher:"V-1"`, `{"voucher":"V-1"}`},
		"an enum's value":      {charge, "shop.v1.Order", `level:LEVEL_SICK`, `{"level":"[redacted]"}`},
		"another enum's value": {charge, "shop.v1.Order", `level:LEVEL_OPEN`, `{"level":"LEVEL_OPEN"}`},
		"a number of no name":  {charge, "shop.v1.Order", `level:7`, `{"level":7}`},
		"in an Any": {charge, "shop.v1.Order", `extra:{[type.googleapis.com/shop.v1.Card]:{holder:"Ann" number:"SECRET"}}`,
			`{"extra":{"@type":"type.googleapis.com/shop.v1.Card","holder":"Ann","number":"[redacted]"}}`},
		"in an Any in an Any": {charge, "shop.v1.Order", `extra:{[x/google.protobuf.Any]:{[x/shop.v1.Card]:{number:"SECRET"}}}`,
			`{"extra":{"@type":"x/google.protobuf.Any","value":{"@type":"x/shop.v1.Card","number":"[redacted]"}}}`},
		"an Any of a time": {charge, "shop.v1.Order", `extra:{[x/google.protobuf.Duration]:{seconds:3}}`,
			`{"extra":{"@type":"x/google.protobuf.Duration","value":"3s"}}`},
		"an Any of a type that nobody knows": {charge, "shop.v1.Order", `extra:{type_url:"x/other.v1.Card" value:"SECRET"}`,
			`{"extra":{"@type":"x/other.v1.Card","@bytes":6}}`},
		"an Any that does not decode": {charge, "shop.v1.Order", `extras:{type_url:"x/shop.v1.Card" value:"SECRET"}`,
			`{"extras":[{"@type":"x/shop.v1.Card","@bytes":6,"@undecodable":true}]}`},

		"in a group":                {old, "old.v1.Job", `name:"A" Login:{user:"u" password:"SECRET"}`, `{"name":"A","login":{"user":"u","password":"[redacted]"}}`},
		"in groups":                 {old, "old.v1.Job", `name:"A" Note:{text:"t"} Note:{secret:"SECRET"}`, `{"name":"A","note":[{"text":"t"},{"secret":"[redacted]"}]}`},
		"a group":                   {old, "old.v1.Job", `name:"A" Vault:{text:"SECRET"}`, `{"name":"A","vault":"[redacted]"}`},
		"an extension":              {old, "old.v1.Job", `name:"A" [old.v1.key]:"SECRET" [old.v1.colour]:"red"`, `{"name":"A","[old.v1.colour]":"red","[old.v1.key]":"[redacted]"}`},
		"in extensions":             {old, "old.v1.Job", `name:"A" [old.v1.secrets]:{text:"SECRET"} [old.v1.Secret.nested]:{text:"SECRET"}`, `{"name":"A","[old.v1.Secret.nested]":{"text":"[redacted]"},"[old.v1.secrets]":[{"text":"[redacted]"}]}`},
		"in an extension's group":   {old, "old.v1.Job", `name:"A" [old.v1.box]:{inside:"SECRET"}`, `{"name":"A","[old.v1.box]":{"inside":"[redacted]"}}`},
		"in a delimited message":    {"new.v1.NewTasks.Do", "new.v1.Job", `text:"A" part:{secret:"SECRET"}`, `{"text":"A","part":{"secret":"[redacted]"}}`},
		"a task of another name":    {"ship", "shop.v1.Parcel", `to:"Ann"`, `{"to":"Ann"}`},
		"an alias":                  {"shop.v1.OrderTasks.Bill", "shop.v1.Order", `pin:"SECRET"`, `{"pin":"[redacted]"}`},
		"an alias of another form":  {"renamed", "shop.v1.Order", `pin:"SECRET"`, `{"pin":"[redacted]"}`},
		"a payload without a field": {"shop.v1.OrderTasks.Sweep", "google.protobuf.Empty", ``, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := r.show(t, c.task, r.bytes(t, protoreflect.FullName(c.message), c.text)); got != c.want {
				t.Errorf("shown: %s\nwant:  %s", got, c.want)
			}
		})
	}
}

func TestUnknownFieldsAreCounted(t *testing.T) {
	t.Parallel()
	r := open(t)
	unknown := func(b []byte) []byte {
		b = protowire.AppendString(protowire.AppendTag(b, 1000, protowire.BytesType), "SECRET")
		b = protowire.AppendVarint(protowire.AppendTag(b, 1001, protowire.VarintType), 424242)
		return protowire.AppendTag(protowire.AppendTag(b, 1002, protowire.StartGroupType), 1002, protowire.EndGroupType)
	}
	card := unknown(r.bytes(t, "shop.v1.Card", `holder:"Ann"`))
	order := unknown(protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), card))
	if got, want := r.show(t, "shop.v1.OrderTasks.Charge", order), `{"card":{"holder":"Ann","@unknown_fields":3},"@unknown_fields":3}`; got != want {
		t.Errorf("shown: %s\nwant:  %s", got, want)
	}
	// A time with fields of a later version has no form of its own any more.
	at := unknown(nil)
	kinds := protowire.AppendBytes(protowire.AppendTag(nil, 29, protowire.BytesType), at)
	if got, want := r.show(t, "shop.v1.OrderTasks.Convert", kinds), `{"timestamp":{"@unknown_fields":3}}`; got != want {
		t.Errorf("shown: %s\nwant:  %s", got, want)
	}
	// An extension that the schema does not have, and a closed enum's number.
	job := protowire.AppendString(protowire.AppendTag(r.bytes(t, "old.v1.Job", `name:"A"`), 150, protowire.BytesType), "SECRET")
	if got, want := r.show(t, "old.v1.OldTasks.Run", job), `{"name":"A","@unknown_fields":1}`; got != want {
		t.Errorf("shown: %s\nwant:  %s", got, want)
	}
}

func TestWhatCannotBeShownSaysWhyWithoutIt(t *testing.T) {
	t.Parallel()
	r := open(t)
	deep := r.bytes(t, "shop.v1.Card", `number:"SECRET"`)
	for range 1001 {
		deep = protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), deep)
	}
	for _, c := range []struct {
		task    string
		payload []byte
		want    string
	}{
		{"shop.v1.OrderTasks.Chrge", nil, `no task "shop.v1.OrderTasks.Chrge"; the nearest is "shop.v1.OrderTasks.Charge"`},
		{"other", nil, `no task "other"`},
		{"shop.v1.OrderTasks.Charge", []byte("SECRET"), "it is no shop.v1.Order: cannot parse"},
		{"shop.v1.OrderTasks.Charge", protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte("SECRET\xff")), "it is no shop.v1.Order: field shop.v1.Order.order_id contains invalid UTF-8"},
		{"shop.v1.OrderTasks.Charge", deep, "too deep"},
	} {
		shown, err := r.schema.Show(c.task, c.payload)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") || shown.JSON != nil {
			t.Errorf("Show(%q): %s, %v; want nothing, and an error that says %q", c.task, shown.JSON, err, c.want)
		}
	}
}

// Where nothing is to be hidden, a message is shown as protobuf's JSON.
func TestWithoutSecretsItIsProtobufsJSON(t *testing.T) {
	t.Parallel()
	r := open(t)
	for seed := range uint64(150) {
		f := &filler{random: rand.New(rand.NewPCG(seed, 0)), types: r.types, anys: 3}
		m := r.message(t, "shop.v1.Kinds")
		f.fill(m, 3)
		want, err := protojson.MarshalOptions{Resolver: r.types}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got := r.show(t, "shop.v1.OrderTasks.Convert", marshal(t, m))
		if diff := cmp.Diff(parsed(t, want), parsed(t, []byte(got))); diff != "" {
			t.Fatalf("seed %d (-protojson +shown)\n%s", seed, diff)
		}
	}
}

func parsed(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}

// Whatever is in a message: nothing of a marked field is shown, and everything
// of one that is not.
func TestNoSecretOfAnyMessageIsShown(t *testing.T) {
	t.Parallel()
	r := open(t)
	for task, message := range map[string]protoreflect.FullName{"shop.v1.OrderTasks.Charge": "shop.v1.Order", "old.v1.OldTasks.Run": "old.v1.Job"} {
		secrets, plain := 0, 0
		for seed := range uint64(150) {
			f := &filler{random: rand.New(rand.NewPCG(seed, 1)), types: r.types, anys: 4}
			m := r.message(t, message)
			f.fill(m, 4)
			secrets, plain = secrets+f.secrets, plain+f.plain
			got := r.show(t, task, marshal(t, m))
			if strings.Contains(got, secretText) || strings.Contains(got, "U0VDUkVU") || strings.Contains(got, "424242") {
				t.Fatalf("%s, seed %d: a secret is shown:\n%s", task, seed, got)
			}
			if shown := strings.Count(got, plainText); shown != f.plain {
				t.Fatalf("%s, seed %d: %d of %d plain texts are shown:\n%s", task, seed, shown, f.plain, got)
			}
		}
		if secrets < 100 || plain < 100 {
			t.Errorf("%s: %d secrets and %d plain texts are too few to tell", task, secrets, plain)
		}
	}
}

const secretText, plainText = "SECRET", "plain"

// filler fills messages at random: with what can be recognised in what is marked.
type filler struct {
	random         *rand.Rand
	types          *dynamicpb.Types
	anys           int // how many types an Any may have; the last has secrets
	secret         int // how many marked fields are around what is filled now
	secrets, plain int
}

func (f *filler) fill(m protoreflect.Message, depth int) {
	desc := m.Descriptor()
	if desc.FullName() == "google.protobuf.Any" {
		f.any(m, depth)
		return
	}
	if texts := wellKnown[desc.FullName()]; texts != nil {
		if err := protojson.Unmarshal([]byte(texts[f.random.IntN(len(texts))]), m.Interface()); err != nil {
			panic(err)
		}
		return
	}
	for _, field := range f.fields(desc) {
		isMessage := field.Message() != nil && !field.IsMap()
		if f.random.IntN(3) > 0 && field.Cardinality() != protoreflect.Required || depth == 0 && (isMessage || field.IsMap()) {
			continue
		}
		if one := field.ContainingOneof(); one != nil && m.WhichOneof(one) != nil {
			continue // it would replace what was counted
		}
		marked := field.Options().(*descriptorpb.FieldOptions).GetDebugRedact()
		if marked {
			f.secret++
		}
		f.field(m, field, depth)
		if marked {
			f.secret--
		}
	}
}

// wellKnown are messages that not everything may be filled into.
var wellKnown = map[protoreflect.FullName][]string{
	"google.protobuf.Timestamp": {`"2025-10-11T12:13:14.000000015Z"`, `"1969-12-31T23:59:59Z"`},
	"google.protobuf.Duration":  {`"3.5s"`, `"-0.000000001s"`},
	"google.protobuf.FieldMask": {`""`, `"fooBar,baz"`},
	"google.protobuf.Struct":    {`{}`, `{"a":{"b":[1,"<x>",null,true]}}`},
	"google.protobuf.Value":     {`null`, `1.5`, `"x"`, `[{}]`},
	"google.protobuf.ListValue": {`[]`, `[1,[2]]`},
}

func (f *filler) fields(desc protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	var fields []protoreflect.FieldDescriptor
	for i := range desc.Fields().Len() {
		fields = append(fields, desc.Fields().Get(i))
	}
	if desc.FullName() == "old.v1.Job" {
		for _, name := range []protoreflect.FullName{"old.v1.colour", "old.v1.key", "old.v1.secrets", "old.v1.box", "old.v1.Secret.nested"} {
			x, err := f.types.FindExtensionByName(name)
			if err != nil {
				panic(err)
			}
			fields = append(fields, x.TypeDescriptor())
		}
	}
	return fields
}

func (f *filler) any(m protoreflect.Message, depth int) {
	name := protoreflect.FullName([]string{"shop.v1.Parcel", "google.protobuf.Duration", "google.protobuf.StringValue", "shop.v1.Card"}[f.random.IntN(f.anys)])
	mt, err := f.types.FindMessageByName(name)
	if err != nil {
		return
	}
	inner := mt.New()
	f.fill(inner, max(0, depth-1))
	b, _ := proto.Marshal(inner.Interface())
	fields := m.Descriptor().Fields()
	m.Set(fields.ByNumber(1), protoreflect.ValueOfString("type.googleapis.com/"+string(name)))
	m.Set(fields.ByNumber(2), protoreflect.ValueOfBytes(b))
}

func (f *filler) field(m protoreflect.Message, field protoreflect.FieldDescriptor, depth int) {
	switch {
	case field.IsMap():
		entries := m.Mutable(field).Map()
		for range 1 + f.random.IntN(3) {
			before := *f
			key := f.value(field.MapKey()).MapKey()
			if entries.Has(key) {
				f.secrets, f.plain = before.secrets, before.plain
				continue
			}
			if field.MapValue().Message() != nil {
				f.fill(entries.Mutable(key).Message(), depth-1)
			} else {
				entries.Set(key, f.value(field.MapValue()))
			}
		}
	case field.IsList():
		list := m.Mutable(field).List()
		for range 1 + f.random.IntN(3) {
			if field.Message() != nil {
				f.fill(list.AppendMutable().Message(), depth-1)
			} else {
				list.Append(f.value(field))
			}
		}
	case field.Message() != nil:
		f.fill(m.Mutable(field).Message(), depth-1)
	default:
		m.Set(field, f.value(field))
	}
}

func (f *filler) value(field protoreflect.FieldDescriptor) protoreflect.Value {
	n := f.random.Int64()
	if f.random.IntN(2) == 0 {
		n = int64(f.random.IntN(100)) - 50
	}
	if f.secret > 0 {
		f.secrets++
		n = 424242
	}
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n%2 == 0)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32([]float32{float32(n), float32(math.Inf(-1)), 1.5e-30, -0.1}[f.random.IntN(4)])
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64([]float64{float64(n), math.Inf(1), 1e300, 0.1}[f.random.IntN(4)])
	case protoreflect.EnumKind:
		values := field.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(f.random.IntN(values.Len())).Number())
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(secretText))
	}
	return protoreflect.ValueOfString(f.string())
}

func (f *filler) string() string {
	odd := []string{"", "\"<\n\u2028\x00é", "&"}[f.random.IntN(3)]
	if f.secret > 0 {
		return secretText + odd
	}
	f.plain++
	return plainText + odd
}

// A set that was read from a file is as good as one that was just compiled.
func TestASchemaFromAFile(t *testing.T) {
	t.Parallel()
	r := open(t)
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(marshal(t, r.set), set); err != nil {
		t.Fatal(err)
	}
	schema, err := payload.New(set)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range []string{"shop.v1.OrderTasks.Charge", "shop.v1.OrderTasks.Bill"} {
		shown, err := schema.Show(task, r.bytes(t, "shop.v1.Order", `pin:"SECRET"`))
		if err != nil || string(shown.JSON) != `{"pin":"[redacted]"}` || shown.Message != "shop.v1.Order" {
			t.Errorf("%s: %+v, %v", task, shown, err)
		}
	}
}

func TestASetThatCannotServeIsRefused(t *testing.T) {
	t.Parallel()
	r := open(t)
	without := func(drop func(*descriptorpb.FileDescriptorProto) bool) *descriptorpb.FileDescriptorSet {
		set := &descriptorpb.FileDescriptorSet{}
		for _, f := range r.set.GetFile() {
			if !drop(f) {
				set.File = append(set.File, f)
			}
		}
		return set
	}
	for want, set := range map[string]*descriptorpb.FileDescriptorSet{
		"but not google/protobuf/any.proto, which that imports; write it with: buf build": without(func(f *descriptorpb.FileDescriptorProto) bool { return f.GetName() == "google/protobuf/any.proto" }),
		"declares no task": without(func(f *descriptorpb.FileDescriptorProto) bool { return len(f.GetService()) > 0 }),
	} {
		if _, err := payload.New(set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want an error that says %q", err, want)
		}
	}
}
