package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile/ast"

	"github.com/backstage-go/backstage/codegen"
)

// unknownType is about a type whose file is not imported, or that is misspelt.
func (a *adviser) unknownType(d *codegen.Diagnostic, m []string) {
	for _, full := range a.readings(m[1], d.Pos.File) {
		file := a.declares(full)
		switch {
		case file == "":
			continue
		case file != d.Pos.File && !a.imports(d.Pos.File, file):
			a.addImport(d, "the schema does not import "+full, file)
		}
		return
	}
	if file := wellKnown("google.protobuf." + m[1]); file != "" {
		d.Hint = fmt.Sprintf("did you mean google.protobuf.%s?", m[1])
		return
	}
	if near := codegen.Nearest(m[1], wellKnownTypes()); near != "" {
		d.Hint = fmt.Sprintf("did you mean %s?", near)
	}
}

// readings are the full names that a type's name may stand for in a file.
func (a *adviser) readings(name, file string) []string {
	if strings.HasPrefix(name, ".") {
		return []string{name[1:]}
	}
	var out []string
	if s := a.sources[file]; s != nil {
		for scope := packageOf(s.text); scope != ""; {
			out = append(out, scope+"."+name)
			scope = scope[:max(0, strings.LastIndexByte(scope, '.'))]
		}
	}
	return append(out, name)
}

// declares returns the schema that declares a type, "" where none does.
func (a *adviser) declares(full string) string {
	if file := wellKnown(full); file != "" {
		return file
	}
	for _, name := range a.sources.names() {
		s := a.sources[name]
		rest, ok := strings.CutPrefix(full, packageOf(s.text)+".")
		if ok && s.tree != nil && declaresType(fileElements(s.tree), rest) {
			return name
		}
	}
	return ""
}

func fileElements(tree *ast.FileNode) []ast.Node {
	var out []ast.Node
	for _, decl := range tree.Decls {
		out = append(out, decl)
	}
	return out
}

// declaresType says whether a message or an enum of a name, which may be nested,
// is among elements.
func declaresType(elements []ast.Node, name string) bool {
	first, rest, nested := strings.Cut(name, ".")
	for _, e := range elements {
		switch e := e.(type) {
		case *ast.EnumNode:
			if !nested && e.Name.Val == first {
				return true
			}
		case *ast.MessageNode:
			if e.Name.Val != first {
				continue
			}
			var inner []ast.Node
			for _, decl := range e.Decls {
				inner = append(inner, decl)
			}
			return !nested || declaresType(inner, rest)
		}
	}
	return false
}

// addImport tells a file once to import another.
func (a *adviser) addImport(d *codegen.Diagnostic, why, file string) {
	key := [2]string{d.Pos.File, file}
	if a.advised[key] {
		return
	}
	a.advised[key] = true
	d.Hint, d.Paste = why+"; add", []string{fmt.Sprintf("import %q;", file)}
}

// imports says whether a schema has an import statement for another.
func (a *adviser) imports(file, other string) bool {
	return slices.ContainsFunc(a.sources.importsOf(file), func(i *ast.ImportNode) bool { return i.Name.AsString() == other })
}

// wellKnown returns the file that declares a type of google.protobuf that
// schemas use, "" for other types.
func wellKnown(full string) string {
	name, ok := strings.CutPrefix(full, "google.protobuf.")
	if !ok {
		return ""
	}
	switch name {
	case "Empty", "Timestamp", "Duration", "Any":
		return "google/protobuf/" + strings.ToLower(name) + ".proto"
	case "FieldMask":
		return "google/protobuf/field_mask.proto"
	case "Struct", "Value", "ListValue", "NullValue":
		return "google/protobuf/struct.proto"
	case "StringValue", "BytesValue", "BoolValue", "Int32Value", "Int64Value", "UInt32Value", "UInt64Value", "FloatValue", "DoubleValue":
		return "google/protobuf/wrappers.proto"
	}
	return ""
}

// wellKnownTypes are those that are misspelt most.
func wellKnownTypes() []string {
	return []string{"google.protobuf.Empty", "google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.FieldMask"}
}
