package provider

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	backstagev1 "github.com/backstage-go/backstage/schema/backstage/v1"
)

// whole lets cmp see the fields of versions to come, too.
var whole = cmp.AllowUnexported(Job{}, Failure{}, Replay{})

// least is the least that is a job.
func least() Job { return Job{Format: Format, ID: "job-1", Task: "t", Queue: "q"} }

func marshal(t *testing.T, j *Job) []byte {
	t.Helper()
	b, err := Marshal(j)
	if err != nil {
		t.Fatalf("Marshal: %v", err)
	}
	return b
}

func unmarshal(t *testing.T, b []byte) Job {
	t.Helper()
	j, err := Unmarshal(b)
	if err != nil {
		t.Fatalf("Unmarshal: %v", err)
	}
	return j
}

// TestRoundTripOfEachField sets the fields of a Job one by one, so that one that
// is added and forgotten in Marshal or Unmarshal fails by its name.
func TestRoundTripOfEachField(t *testing.T) {
	seen := 0
	eachField(reflect.TypeFor[Job](), nil, func(name string, path []int) {
		if name == "Delay" { // an instruction, not part of the record
			return
		}
		seen++
		t.Run(name, func(t *testing.T) {
			want := least()
			setSome(t, reflect.ValueOf(&want).Elem().FieldByIndex(path))
			got := unmarshal(t, marshal(t, &want))
			if diff := cmp.Diff(want, got, whole); diff != "" {
				t.Errorf("a record with it comes back changed (-want +got):\n%s", diff)
			}
		})
	})
	if seen < 30 {
		t.Errorf("only %d fields were tried", seen)
	}
}

// eachField visits the exported leaves of a struct.
func eachField(s reflect.Type, path []int, visit func(name string, path []int)) {
	for i := range s.NumField() {
		f := s.Field(i)
		at := append(path[:len(path):len(path)], i)
		switch {
		case !f.IsExported():
		case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]():
			eachField(f.Type, at, visit)
		default:
			visit(f.Name, at)
		}
	}
}

// setSome gives a field a value that is not zero.
func setSome(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(0, 1_700_000_000_123_456_789)))
		return
	case []byte:
		v.SetBytes([]byte{0, 1, 0xff})
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("some text, ü")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1<<30 + 7)
	case reflect.Uint32:
		v.SetUint(1<<30 + 7)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"a": "1", "b": ""}))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			if e := v.Index(i); e.Kind() == reflect.Struct {
				eachField(e.Type(), nil, func(_ string, path []int) { setSome(t, e.FieldByIndex(path)) })
			} else {
				setSome(t, e)
			}
		}
	default:
		t.Fatalf("no value for a field of type %v", v.Type())
	}
}

// TestEachFieldOfTheRecordIsRead sets the fields of the record one by one, so that
// one that is added to the schema and forgotten here fails by its name: it would
// be known to the schema, and so not survive as unknown.
func TestEachFieldOfTheRecordIsRead(t *testing.T) {
	fields := (&backstagev1.Record{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		t.Run(string(f.Name()), func(t *testing.T) {
			want := &backstagev1.Record{Format: 1, Id: "job-1", Task: "t", Queue: "q"}
			fill(want.ProtoReflect(), f)
			b, err := proto.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			j := unmarshal(t, b)
			got := &backstagev1.Record{}
			if err := proto.Unmarshal(marshal(t, &j), got); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(want, got) {
				t.Errorf("read and written again:\n got %v\nwant %v", got, want)
			}
		})
	}
}

// TestRecordsAreWrittenAsProtobufDoes: the same fields in the same order, to the
// byte.
func TestRecordsAreWrittenAsProtobufDoes(t *testing.T) {
	all := least()
	eachField(reflect.TypeFor[Job](), nil, func(_ string, path []int) {
		setSome(t, reflect.ValueOf(&all).Elem().FieldByIndex(path))
	})
	below := least()
	below.Counters.Failures, below.Expires, below.Headers = -1, -1, map[string]string{"": ""}
	for name, j := range map[string]Job{"least": least(), "all": all, "below zero": below} {
		stored := marshal(t, &j)
		var r backstagev1.Record
		if err := proto.Unmarshal(stored, &r); err != nil {
			t.Fatal(err)
		}
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(stored, want) {
			t.Errorf("%s: written as\n%x\nprotobuf writes\n%x", name, stored, want)
		}
	}
}

// fill gives a field of a message a value that is not zero, and all the fields of
// a message in it.
func fill(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	switch {
	case f.IsMap():
		m.Mutable(f).Map().Set(protoreflect.ValueOfString("k").MapKey(), protoreflect.ValueOfString("v"))
	case f.IsList() && f.Message() != nil:
		e := m.Mutable(f).List().AppendMutable().Message()
		for i := range e.Descriptor().Fields().Len() {
			fill(e, e.Descriptor().Fields().Get(i))
		}
	case f.IsList():
		m.Mutable(f).List().Append(scalar(f))
	default:
		m.Set(f, scalar(f))
	}
}

func scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("text")
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{1, 2})
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(7)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(7)
	default:
		return protoreflect.ValueOfInt64(7)
	}
}

func TestUnknownFieldsSurviveOnAllLevels(t *testing.T) {
	unknown := protowire.AppendString(protowire.AppendTag(nil, 1000, protowire.BytesType), "later")
	r := &backstagev1.Record{
		Format: 1, Id: "job-1", Task: "t", Queue: "q",
		History: []*backstagev1.Failure{{Message: "m"}},
		Replays: []*backstagev1.Replay{{At: 1}},
	}
	for _, m := range []proto.Message{r, r.History[0], r.Replays[0]} {
		m.ProtoReflect().SetUnknown(unknown)
	}
	b, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	j := unmarshal(t, b)
	for name, rewritten := range map[string]Job{
		"read and written": j,
		"retried":          j.After(Again{Why: FailedAgain, Failure: Failure{Message: "again"}}),
		"snoozed":          j.After(Again{Why: SnoozedAgain}),
		"dead-lettered":    j.Dead(Failure{Message: "dead"}),
		"replayed":         j.Dead(Failure{Message: "dead"}).Replay(time.Unix(1, 0)),
	} {
		var got backstagev1.Record
		if err := proto.Unmarshal(marshal(t, &rewritten), &got); err != nil {
			t.Fatal(err)
		}
		for level, m := range map[string]proto.Message{"record": &got, "failure": got.History[0], "replay": got.Replays[0]} {
			if !bytes.Equal(m.ProtoReflect().GetUnknown(), unknown) {
				t.Errorf("%s: the %s has unknown fields %x; want %x", name, level, m.ProtoReflect().GetUnknown(), unknown)
			}
		}
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct{ has, wants uint32 }{{0, Format}, {Format, Format}, {Format + 6, Format + 6}} {
		j := least()
		j.Format = c.has
		if got := unmarshal(t, marshal(t, &j)).Format; got != c.wants {
			t.Errorf("format %d is written as %d; want %d", c.has, got, c.wants)
		}
	}
}

func TestMarshalIsDeterministic(t *testing.T) {
	j := least()
	j.Headers = make(map[string]string)
	for i := range 20 {
		j.Headers[fmt.Sprint(i)] = "v"
	}
	first := marshal(t, &j)
	for range 20 {
		if !bytes.Equal(marshal(t, &j), first) {
			t.Fatal("two calls of Marshal gave different bytes")
		}
	}
}

func TestMarshalRefusesBrokenText(t *testing.T) {
	j := least()
	j.Actor = "\xff"
	if _, err := Marshal(&j); err == nil {
		t.Error("Marshal took text that is not UTF-8")
	}
}

func TestUnmarshalRefusesWhatIsNoJob(t *testing.T) {
	without := func(clear func(*Job)) []byte {
		j := least()
		clear(&j)
		return marshal(t, &j)
	}
	for name, b := range map[string][]byte{
		"nothing":    nil,
		"text":       []byte(`{"id": "job-1"}`),
		"cut off":    without(func(*Job) {})[:8],
		"no id":      without(func(j *Job) { j.ID = "" }),
		"no task":    without(func(j *Job) { j.Task = "" }),
		"no queue":   without(func(j *Job) { j.Queue = "" }),
		"no format":  {0x1a, 1, 'a', 0x22, 1, 't', 0x2a, 1, 'q'},
		"not UTF-8":  append(without(func(*Job) {}), 0x1a, 1, 0xff),
		"other type": append(without(func(*Job) {}), 0x0b),
	} {
		if _, err := Unmarshal(b); !errors.Is(err, ErrNoRecord) {
			t.Errorf("%s: %v; want ErrNoRecord", name, err)
		}
	}
}

// FuzzRecord checks that whatever is read as a job is written and read again
// without a change.
func FuzzRecord(f *testing.F) {
	j := least()
	b, err := Marshal(&j)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	j.History = []Failure{{At: time.Unix(1, 2), Message: "m"}}
	j.Replays = []Replay{{At: time.Unix(3, 4), Failures: 1}}
	j.Headers = map[string]string{"a": "b"}
	if b, err = Marshal(&j); err != nil {
		f.Fatal(err)
	}
	f.Add(append(b, 0xc2, 0x3e, 1, 'x'))
	f.Add([]byte("garbage"))
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := Unmarshal(b)
		if err != nil {
			if !errors.Is(err, ErrNoRecord) {
				t.Errorf("%v; want ErrNoRecord", err)
			}
			return
		}
		for _, j := range []Job{j, j.After(Again{Why: FailedAgain, Failure: Failure{Message: string(b)}}), j.Dead(Failure{Detail: string(b)})} {
			j.Delay = 0
			stored := marshal(t, &j)
			again := unmarshal(t, stored)
			if diff := cmp.Diff(j, again, whole); diff != "" {
				t.Errorf("a job comes back changed (-want +got):\n%s", diff)
			}
			if !bytes.Equal(marshal(t, &again), stored) {
				t.Error("a job that was read is written as other bytes")
			}
		}
	})
}
