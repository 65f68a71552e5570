package backstage

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// invalidError is all that is wrong with a job, whatever the provider.
type invalidError struct {
	task string
	errs []error
}

// Error names the task once.
func (e *invalidError) Error() string {
	texts := make([]string, len(e.errs))
	for i, err := range e.errs {
		texts[i] = withoutTask(err, e.task)
	}
	text := strings.Join(texts, "; ")
	if e.task == "" {
		return text
	}
	return "task " + e.task + ": " + text
}

// Unwrap returns what is wrong.
func (e *invalidError) Unwrap() []error { return e.errs }

// withoutTask returns an error's text for where the task is named already: typed
// errors name theirs, because they may stand alone.
func withoutTask(err error, task string) string {
	return strings.TrimPrefix(err.Error(), "task "+task+": ")
}

// fail notes what is wrong with the job. Copies of it do not share what is added.
func (m *making) fail(err error) {
	var errs []error
	if m.invalid != nil {
		errs = slices.Clip(m.invalid.errs)
	}
	m.invalid = &invalidError{task: m.job.Task, errs: append(errs, err)}
}

// err returns all that is wrong with the job.
func (m *making) err() error {
	if m.invalid == nil {
		return nil
	}
	return m.invalid
}

// marshal returns the bytes of a payload. The error names the field whose text is
// not valid, which protobuf's own does not.
func marshal(in proto.Message) ([]byte, error) {
	payload, err := proto.MarshalOptions{Deterministic: true}.Marshal(in)
	if err == nil {
		return payload, nil
	}
	if strings.Contains(err.Error(), "UTF-8") {
		if paths := brokenTexts(in.ProtoReflect(), ""); len(paths) > 0 {
			return nil, fmt.Errorf("payload field %s is not valid UTF-8", slices.Min(paths))
		}
	}
	return nil, fmt.Errorf("the payload cannot be marshalled: %w", err)
}

// brokenTexts returns the paths of a message's strings that are not valid UTF-8.
func brokenTexts(m protoreflect.Message, prefix string) []string {
	var paths []string
	one := func(fd protoreflect.FieldDescriptor, v protoreflect.Value, path string) {
		switch fd.Kind() {
		case protoreflect.StringKind:
			if !utf8.ValidString(v.String()) {
				paths = append(paths, path)
			}
		case protoreflect.MessageKind, protoreflect.GroupKind:
			paths = append(paths, brokenTexts(v.Message(), path+".")...)
		}
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		path := prefix + fd.TextName()
		switch {
		case fd.IsList():
			for i := range v.List().Len() {
				one(fd, v.List().Get(i), fmt.Sprintf("%s[%d]", path, i))
			}
		case fd.IsMap():
			v.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				at := fmt.Sprintf("%s[%q]", path, key.String())
				one(fd.MapKey(), key.Value(), at)
				one(fd.MapValue(), value, at)
				return true
			})
		default:
			one(fd, v, path)
		}
		return true
	})
	return paths
}
