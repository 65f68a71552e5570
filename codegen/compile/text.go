package compile

import (
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/backstage-go/backstage/codegen"
)

// invalidText finds strings in options that are not UTF-8. The compiler takes
// them, and marshalling fails on them later without saying where they are.
func invalidText(file *descriptorpb.FileDescriptorProto) codegen.Diagnostics {
	var out codegen.Diagnostics
	// The walk itself cannot fail: its function returns no error.
	_ = protorange.Range(file.ProtoReflect(), func(v protopath.Values) error {
		if inComments(v.Path) {
			return protorange.Break
		}
		text, ok := v.Index(-1).Value.Interface().(string)
		if !ok || utf8.ValidString(text) {
			return nil
		}
		out = append(out, codegen.Diagnostic{
			Pos:     placeOf(file, numbers(v.Path)),
			Message: "the string is not valid UTF-8",
		})
		return nil
	})
	return out
}

// inComments says whether a path is about the text of comments, which need no
// encoding because descriptors do not check them.
func inComments(p protopath.Path) bool {
	return len(p) > 1 && p[1].Kind() == protopath.FieldAccessStep && p[1].FieldDescriptor().Name() == "source_code_info"
}

// numbers turns a path of reflection into one of source info.
func numbers(p protopath.Path) []int32 {
	var out []int32
	for _, step := range p {
		switch step.Kind() {
		case protopath.FieldAccessStep:
			out = append(out, int32(step.FieldDescriptor().Number()))
		case protopath.ListIndexStep:
			out = append(out, int32(step.ListIndex()))
		}
	}
	return out
}

// placeOf returns the deepest known place of a path.
func placeOf(file *descriptorpb.FileDescriptorProto, path []int32) codegen.Position {
	pos := codegen.Position{File: file.GetName()}
	depth := 0
	for _, loc := range file.GetSourceCodeInfo().GetLocation() {
		if len(loc.Path) <= depth || !hasPrefix(path, loc.Path) {
			continue
		}
		depth = len(loc.Path)
		pos = spanOf(file.GetName(), loc.Span)
	}
	return pos
}

func hasPrefix(path, prefix []int32) bool {
	if len(prefix) > len(path) {
		return false
	}
	for i, n := range prefix {
		if path[i] != n {
			return false
		}
	}
	return true
}

// spanOf reads a span of source info, which leaves out the last line when it is
// the first.
func spanOf(file string, span []int32) codegen.Position {
	if len(span) < 3 {
		return codegen.Position{File: file}
	}
	endLine := span[0]
	if len(span) == 4 {
		endLine = span[2]
	}
	return codegen.Position{
		File:      file,
		Line:      int(span[0]) + 1,
		Column:    int(span[1]) + 1,
		EndLine:   int(endLine) + 1,
		EndColumn: int(span[len(span)-1]) + 1,
	}
}
