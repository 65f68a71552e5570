package provider

import (
	"errors"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	backstagev1 "github.com/backstage-go/backstage/schema/backstage/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

var errText = errors.New("text that is not valid UTF-8")

// encoder writes fields as protobuf does: zero values are left out.
type encoder struct{ b []byte }

// sizeHint is about how many bytes a record has, so that it is written without
// growing.
func sizeHint(j *Job) int {
	return 96 + len(j.ID) + len(j.Task) + len(j.Queue) + len(j.Payload) + len(j.OrderingKey) + len(j.Dedupe.Key) +
		len(j.Root) + len(j.Parent) + len(j.Edge) + len(j.rest)
}

// field writes what one of Job.field's pointers points to.
func (e *encoder) field(n protowire.Number, at any) error {
	switch at := at.(type) {
	case *string:
		if *at != "" {
			return e.text(n, *at)
		}
	case *int32:
		e.number(n, int64(*at))
	case *time.Duration:
		e.number(n, int64(*at))
	case *time.Time:
		e.number(n, nanos(*at))
	case *bool:
		e.number(n, int64(protowire.EncodeBool(*at)))
	case *[]byte:
		if len(*at) > 0 {
			e.bytes(n, *at)
		}
	case *[]string:
		return e.texts(n, *at)
	case *map[string]string:
		return e.headers(n, *at)
	case *[]Failure:
		for i := range *at {
			if err := e.message(n, (*at)[i].record()); err != nil {
				return err
			}
		}
	case *[]Replay:
		for i := range *at {
			if err := e.message(n, (*at)[i].record()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *encoder) number(n protowire.Number, v int64) {
	if v != 0 {
		e.b = protowire.AppendVarint(protowire.AppendTag(e.b, n, protowire.VarintType), uint64(v))
	}
}

func (e *encoder) bytes(n protowire.Number, v []byte) {
	e.b = protowire.AppendBytes(protowire.AppendTag(e.b, n, protowire.BytesType), v)
}

func (e *encoder) text(n protowire.Number, s string) error {
	if !utf8.ValidString(s) {
		return errText
	}
	e.b = protowire.AppendString(protowire.AppendTag(e.b, n, protowire.BytesType), s)
	return nil
}

func (e *encoder) texts(n protowire.Number, list []string) error {
	for _, s := range list {
		if err := e.text(n, s); err != nil {
			return err
		}
	}
	return nil
}

// headers writes a map as protobuf does: a message of key and value each, in the
// order of the keys.
func (e *encoder) headers(n protowire.Number, m map[string]string) error {
	if len(m) == 0 {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		var entry encoder
		if err := errors.Join(entry.text(1, key), entry.text(2, m[key])); err != nil {
			return err
		}
		e.bytes(n, entry.b)
	}
	return nil
}

func (e *encoder) message(n protowire.Number, m proto.Message) error {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	e.bytes(n, b)
	return err
}

// wireValue is the value of a field: a number, or bytes.
type wireValue struct {
	kind   protowire.Type
	number uint64
	bytes  []byte
}

// decodeField reads the field at the beginning of b, and returns its size in all.
func decodeField(b []byte) (n protowire.Number, size int, v wireValue, err error) {
	n, kind, tag := protowire.ConsumeTag(b)
	if tag < 0 {
		return 0, 0, v, protowire.ParseError(tag)
	}
	length := 0
	switch v.kind = kind; kind {
	case protowire.VarintType:
		v.number, length = protowire.ConsumeVarint(b[tag:])
	case protowire.BytesType:
		v.bytes, length = protowire.ConsumeBytes(b[tag:])
	default:
		length = protowire.ConsumeFieldValue(n, kind, b[tag:])
	}
	if length < 0 {
		return 0, 0, v, protowire.ParseError(length)
	}
	return n, tag + length, v, nil
}

// into puts a value where one of Job.field's pointers points to, and reports
// whether it is of the field's kind.
func (v wireValue) into(at any) (known bool, err error) {
	switch v.kind {
	case protowire.VarintType:
		return v.numberInto(at), nil
	case protowire.BytesType:
		return v.bytesInto(at)
	}
	return false, nil
}

func (v wireValue) numberInto(at any) bool {
	switch at := at.(type) {
	case *int32:
		*at = int32(v.number)
	case *uint32:
		*at = uint32(v.number)
	case *bool:
		*at = protowire.DecodeBool(v.number)
	case *time.Duration:
		*at = time.Duration(v.number)
	case *time.Time:
		*at = instant(int64(v.number))
	default:
		return false
	}
	return true
}

func (v wireValue) bytesInto(at any) (known bool, err error) {
	switch at := at.(type) {
	case *string:
		*at, err = v.text()
	case *[]byte:
		*at = append([]byte{}, v.bytes...)
	case *[]string:
		var s string
		s, err = v.text()
		*at = append(*at, s)
	case *map[string]string:
		err = v.header(at)
	case *[]Failure:
		var r backstagev1.Failure
		err = proto.Unmarshal(v.bytes, &r)
		*at = append(*at, failureOf(&r))
	case *[]Replay:
		var r backstagev1.Replay
		err = proto.Unmarshal(v.bytes, &r)
		*at = append(*at, replayOf(&r))
	default:
		return false, nil
	}
	return true, err
}

func (v wireValue) text() (string, error) {
	if !utf8.Valid(v.bytes) {
		return "", errText
	}
	return string(v.bytes), nil
}

// header puts one entry into a map.
func (v wireValue) header(into *map[string]string) error {
	var entry [2]string // key and value
	for b := v.bytes; len(b) > 0; {
		n, size, part, err := decodeField(b)
		if err == nil && part.kind == protowire.BytesType && (n == 1 || n == 2) {
			entry[n-1], err = part.text()
		}
		if err != nil {
			return err
		}
		b = b[size:]
	}
	if *into == nil {
		*into = make(map[string]string)
	}
	(*into)[entry[0]] = entry[1]
	return nil
}
