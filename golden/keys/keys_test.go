// Package keys_test makes jobs of the tasks in the folders below and reads their
// keys.
package keys_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	hybridkeys "github.com/backstage-go/backstage/golden/keys/hybrid"
	hybridtasks "github.com/backstage-go/backstage/golden/keys/hybrid/keytasks"
	opaquekeys "github.com/backstage-go/backstage/golden/keys/opaque"
	opaquetasks "github.com/backstage-go/backstage/golden/keys/opaque/keytasks"
	openkeys "github.com/backstage-go/backstage/golden/keys/open"
	opentasks "github.com/backstage-go/backstage/golden/keys/open/keytasks"
	proto2keys "github.com/backstage-go/backstage/golden/keys/proto2"
	proto2tasks "github.com/backstage-go/backstage/golden/keys/proto2/keytasks"
	keysv1 "github.com/backstage-go/backstage/golden/keys/v1"
	"github.com/backstage-go/backstage/golden/keys/v1/keytasks"
	backstage "github.com/backstage-go/backstage/runtime"
)

// of makes a job of a payload written as text.
func of[M proto.Message](t *testing.T, job func(M, ...backstage.EnqueueOption) backstage.Job, text string) backstage.Job {
	t.Helper()
	var zero M
	in := zero.ProtoReflect().New().Interface()
	if err := (prototext.UnmarshalOptions{AllowPartial: true}).Unmarshal([]byte(text), in); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return job(in.(M))
}

// check compares the key of a job, or the field that is empty.
func check(t *testing.T, what string, job backstage.Job, key, wantKey, wantEmpty string) {
	t.Helper()
	var empty *backstage.EmptyKeyError
	switch errors.As(job.Err(), &empty); {
	case wantEmpty == "" && job.Err() != nil:
		t.Errorf("%s: %v, want key %q", what, job.Err(), wantKey)
	case wantEmpty == "" && key != wantKey:
		t.Errorf("%s: key %q, want %q", what, key, wantKey)
	case wantEmpty != "" && (empty == nil || empty.Field != wantEmpty):
		t.Errorf("%s: key %q and error %v, want that field %q is empty", what, key, job.Err(), wantEmpty)
	}
}

func TestKeysOfEveryKind(t *testing.T) {
	t.Parallel()
	const name = "keys.v1.KeyTasks."
	const numbers = "i32: -1 i64: -2 u32: 3 u64: 18446744073709551615 s32: -5 s64: -6 f32: 7 f64: 8 sf32: -9 sf64: -10"
	for _, test := range []struct {
		job                func(*keysv1.Kinds, ...backstage.EnqueueOption) backstage.Job
		payload            string
		wantKey, wantEmpty string
	}{
		{keytasks.TextJob, `text: "a/b"`, name + "Text:text/a%2Fb", ""},
		{keytasks.TextJob, ``, "", "text"},
		{keytasks.NumbersJob, numbers, name + "Numbers:-1.-2.3.18446744073709551615.-5.-6.7.8.-9.-10", ""},
		{keytasks.NumbersJob, `i32: 1`, "", "i64"},
		{keytasks.FlagsJob, `sub {} maybe_flag: false`, name + "Flags:false-false-false", ""},
		{keytasks.FlagsJob, `flag: true sub { flag: true } maybe_flag: true`, name + "Flags:true-true-true", ""},
		{keytasks.FlagsJob, `maybe_flag: true`, "", "sub.flag"},
		{keytasks.FlagsJob, `sub {}`, "", "maybe_flag"},
		{keytasks.EnumsJob, `colour: COLOUR_RED nested: NESTED_ONE foreign: FOREIGN_ONE maybe_colour: COLOUR_UNSPECIFIED`, name + "Enums:1/1/1/0", ""},
		{keytasks.EnumsJob, `colour: COLOUR_RED nested: NESTED_ONE foreign: FOREIGN_ONE`, "", "maybe_colour"},
		{keytasks.EnumsJob, `nested: NESTED_ONE foreign: FOREIGN_ONE maybe_colour: COLOUR_RED`, "", "colour"},
		{keytasks.PresenceJob, `maybe_text: "t" maybe_number: 0 wrapped { value: "w" } wrapped_number { value: 4 }`, name + "Presence:t,0,w,4", ""},
		{keytasks.PresenceJob, `maybe_text: "" maybe_number: 0 wrapped { value: "w" } wrapped_number { value: 4 }`, "", "maybe_text"},
		{keytasks.PresenceJob, `maybe_text: "t" maybe_number: 1 wrapped { value: "w" }`, "", "wrapped_number.value"},
		{keytasks.OptionalJob, ``, name + "Optional:,0,false,0,", ""},
		{keytasks.DeepJob, `sub { id: "1" sub { sub { id: "3" } } } foreign_sub { id: "f" }`, name + "Deep:1:3:f", ""},
		{keytasks.DeepJob, `sub { id: "1" } foreign_sub { id: "f" }`, "", "sub.sub.sub.id"},
	} {
		job := of(t, test.job, test.payload)
		check(t, job.Task()+"("+test.payload+")", job, job.DedupeKey(), test.wantKey, test.wantEmpty)
	}
	literal := of(t, keytasks.LiteralJob, `text: "{x}"`)
	check(t, "a literal", literal, literal.DedupeKey(), name+`Literal:one {and} \ "only" ä`, "")
	check(t, "braces", literal, literal.OrderingKey(), "{%7Bx%7D}", "")
}

// The open, the hybrid and the opaque API, and proto2, tell alike what is unset.
func TestPresenceIsReadAlikeInAllAPIs(t *testing.T) {
	t.Parallel()
	const all = `text: "t" number: 0 flag: false sub { id: "s" } `
	for _, test := range []struct {
		api                 string
		explicit, byDefault func(payload string) backstage.Job
	}{
		{"keys.open.", func(p string) backstage.Job { return of(t, opentasks.ExplicitJob, p+` has_id: true`) }, func(p string) backstage.Job { return of(t, opentasks.DefaultJob, p+` has_id: true`) }},
		{"keys.hybrid.", func(p string) backstage.Job { return of(t, hybridtasks.ExplicitJob, p+` has_id: true`) }, func(p string) backstage.Job { return of(t, hybridtasks.DefaultJob, p+` has_id: true`) }},
		{"keys.opaque.", func(p string) backstage.Job { return of(t, opaquetasks.ExplicitJob, p+` has_id: true`) }, func(p string) backstage.Job { return of(t, opaquetasks.DefaultJob, p+` has_id: true`) }},
		{"keys.proto2.", func(p string) backstage.Job { return of(t, proto2tasks.ExplicitJob, p+` must: "m"`) }, func(p string) backstage.Job { return of(t, proto2tasks.DefaultJob, p+` must: "m"`) }},
	} {
		for payload, wantEmpty := range map[string]string{
			all + "colour: COLOUR_RED": "",
			all:                        "colour",
			`text: "t" number: 0 colour: COLOUR_RED sub { id: "s" }`:           "flag",
			`text: "t" flag: true colour: COLOUR_RED sub { id: "s" }`:          "number",
			`text: "" number: 0 flag: true colour: COLOUR_RED sub { id: "s" }`: "text",
			`text: "t" number: 0 flag: true colour: COLOUR_RED sub {}`:         "sub.id",
			`text: "t" number: 0 flag: true colour: COLOUR_RED`:                "sub.id",
		} {
			job := test.explicit(payload)
			check(t, test.api+payload, job, job.DedupeKey(), test.api+"KeyTasks.Explicit:t/0/false/1/s", wantEmpty)
		}
		for payload, wantEmpty := range map[string]string{
			``:                                    "text_default",
			`text_default: "x"`:                   "number_default",
			`text_default: "" number_default: 7`:  "text_default",
			`text_default: "x" number_default: 7`: "",
		} {
			job := test.byDefault(payload)
			check(t, test.api+"default "+payload, job, job.DedupeKey(), test.api+"KeyTasks.Default:x/7/true", wantEmpty)
		}
	}
}

// Editions have fields that look like a group on the wire and are none.
func TestDelimitedFieldsAreMessages(t *testing.T) {
	t.Parallel()
	const payload = `delimited { id: "d" } has_id: true`
	for _, job := range []backstage.Job{
		of(t, opentasks.DelimitedJob, payload), of(t, hybridtasks.DelimitedJob, payload), of(t, opaquetasks.DelimitedJob, payload),
	} {
		check(t, job.Task(), job, job.DedupeKey(), job.Task()+":d", "")
	}
	empty := of(t, opentasks.DelimitedJob, `delimited {} has_id: true`)
	check(t, "empty", empty, empty.DedupeKey(), "", "delimited.id")
}

// A field without a getter that all builds have is read all the same.
func TestFieldsOfAHybridMessageAreReadInAllBuilds(t *testing.T) {
	t.Parallel()
	const all = `text: "t" flag: false small: -1 big: -2 size: 3 bigger: 18446744073709551615 colour: COLOUR_RED `
	for payload, wantEmpty := range map[string]string{
		all + `sub { id: "s" }`:        "",
		all + `sub {}`:                 "sub.id",
		all:                            "sub.id",
		`get_text: "t" get_small: "s"`: "text",
		`text: "t"`:                    "flag",
	} {
		job := of(t, hybridtasks.ReverseJob, payload)
		check(t, payload, job, job.DedupeKey(), "keys.hybrid.KeyTasks.Reverse:t/false/-1/-2/3/18446744073709551615/1/s", wantEmpty)
	}
}

func TestNilPayloadsAreRefused(t *testing.T) {
	t.Parallel()
	for _, job := range []backstage.Job{
		opentasks.ExplicitJob((*openkeys.Kinds)(nil)),
		hybridtasks.ExplicitJob((*hybridkeys.Kinds)(nil)),
		hybridtasks.ReverseJob((*hybridkeys.Reversed)(nil)),
		opaquetasks.ExplicitJob((*opaquekeys.Kinds)(nil)),
		proto2tasks.ExplicitJob((*proto2keys.Kinds)(nil)),
	} {
		if job.Err() == nil {
			t.Errorf("%s of nil is accepted, with key %q", job.Task(), job.DedupeKey())
		}
	}
}
