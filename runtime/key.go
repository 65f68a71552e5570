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
	text    string
	literal bool   // of the template, not of a field
	empty   string // the path of a field without a value
}

// KeyValue are the types of fields that a key template may name. Enums are
// passed as their number, because their names change.
type KeyValue interface {
	string | int32 | int64 | uint32 | uint64 | bool
}

// KeyText returns a literal part.
func KeyText(s string) KeyPart { return KeyPart{text: s, literal: true} }

// KeyField returns the part for a field. If set is false, JoinKey fails with a
// *EmptyKeyError that names the path.
func KeyField[V KeyValue](path string, value V, set bool) KeyPart {
	if !set {
		return KeyPart{empty: path}
	}
	switch v := any(value).(type) {
	case string:
		return KeyPart{text: v}
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
// field has no value: an empty id would make one key of every job. What separates
// fields is percent-escaped in their values, so that they never run into each
// other: the template {a}-{b} makes different keys of "x-y", "z" and "x", "y-z".
// Where nothing but letters and digits stands between two fields, a comma does.
func JoinKey(parts ...KeyPart) (string, error) {
	separators := separatorsOf(parts)
	var b strings.Builder
	separated := true
	for _, part := range parts {
		switch {
		case part.empty != "":
			return "", &EmptyKeyError{Field: part.empty}
		case part.literal:
			b.WriteString(part.text)
			separated = separated || strings.ContainsFunc(part.text, isSeparator)
		case !utf8.ValidString(part.text):
			return "", errors.New("the key is not valid UTF-8")
		default:
			if !separated {
				b.WriteByte(',')
			}
			writeEscaped(&b, part.text, separators)
			separated = false
		}
	}
	return boundKey(b.String()), nil
}

func boundKey(key string) string {
	if len(key) <= maxName {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	suffix := "#" + hex.EncodeToString(sum[:])
	return strings.ToValidUTF8(key[:maxName-len(suffix)], "") + suffix
}

// separatorsOf returns the characters that a value must not have as they are: the
// usual ones, and all in the literals that are neither letters nor digits.
func separatorsOf(parts []KeyPart) string {
	separators := "%/:{}#,"
	for _, part := range parts {
		if !part.literal {
			continue
		}
		for _, r := range part.text {
			if isSeparator(r) && !strings.ContainsRune(separators, r) {
				separators += string(r)
			}
		}
	}
	return separators
}

// isSeparator reports whether a character of a literal separates fields: letters
// and digits do not.
func isSeparator(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

func writeEscaped(b *strings.Builder, value, separators string) {
	if !strings.ContainsAny(value, separators) {
		b.WriteString(value)
		return
	}
	for _, r := range value {
		if !strings.ContainsRune(separators, r) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(b, "%%%02X", c)
		}
	}
}
