package backstage

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// KeyPart is a piece of a key: what generated code makes of the literals and the
// fields of a key template.
type KeyPart struct {
	text  string
	field string // of a field part that is empty
}

// KeyValue are the types of fields that a key template may name. Enums are
// passed as their number, because their names change.
type KeyValue interface {
	string | int32 | int64 | uint32 | uint64 | bool
}

// KeyText returns a literal part.
func KeyText(s string) KeyPart { return KeyPart{text: s} }

// KeyField returns the part for a field. The value is escaped, so that parts
// never run into each other. If set is false, JoinKey fails with a
// *EmptyKeyError that names the path.
func KeyField[V KeyValue](path string, value V, set bool) KeyPart {
	if !set {
		return KeyPart{field: path}
	}
	switch v := any(value).(type) {
	case string:
		return KeyPart{text: escapeKey(v)}
	case bool:
		return KeyPart{text: strconv.FormatBool(v)}
	default:
		return KeyPart{text: fmt.Sprint(v)}
	}
}

// IsSet reports whether a field with presence is set, alike for messages of the
// open, the hybrid and the opaque API. It is false for a nil message.
func IsSet(message proto.Message, field protoreflect.Name) bool {
	m := message.ProtoReflect()
	return m.IsValid() && m.Has(m.Descriptor().Fields().ByName(field))
}

// JoinKey returns the key that the parts make. It returns a *EmptyKeyError if a
// field has no value: an empty id would make one key of every job.
func JoinKey(parts ...KeyPart) (string, error) {
	var b strings.Builder
	for _, part := range parts {
		if part.field != "" {
			return "", &EmptyKeyError{Field: part.field}
		}
		b.WriteString(part.text)
	}
	key := b.String()
	if !utf8.ValidString(key) {
		return "", errors.New("the key is not valid UTF-8")
	}
	return boundKey(key), nil
}

func boundKey(key string) string {
	if len(key) <= maxName {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	suffix := "#" + hex.EncodeToString(sum[:])
	return strings.ToValidUTF8(key[:maxName-len(suffix)], "") + suffix
}

// escapeKey escapes what separates the parts of a key.
func escapeKey(s string) string {
	if !strings.ContainsAny(s, "%/:{}#") {
		return s
	}
	return strings.NewReplacer("%", "%25", "/", "%2F", ":", "%3A", "{", "%7B", "}", "%7D", "#", "%23").Replace(s)
}
