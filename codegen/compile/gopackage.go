package compile

import (
	"fmt"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/backstage-go/backstage/codegen"
)

const goPackageOption = 11 // in google.protobuf.FileOptions

// goPackages checks that every schema says which Go package it becomes, and that
// those to generate are in the module.
func goPackages(request *pluginpb.CodeGeneratorRequest, s sources, m *module) codegen.Diagnostics {
	generated := map[string]bool{}
	for _, name := range request.FileToGenerate {
		generated[name] = true
	}
	c := goPackageChecker{module: m, sources: s, names: map[string]named{}, paths: map[string]named{}, files: map[string]named{}}
	for _, f := range request.ProtoFile {
		c.check(f, generated[f.GetName()])
	}
	return c.found
}

type goPackageChecker struct {
	module  *module
	sources sources
	// names are the package names of import paths, and who gave them.
	names map[string]named
	// paths are the import paths to generate in lower case, and files the generated
	// files: some systems know one of each only.
	paths, files map[string]named
	found        codegen.Diagnostics
}

type named struct {
	name string
	pos  codegen.Position
}

func (c *goPackageChecker) check(f *descriptorpb.FileDescriptorProto, generate bool) {
	option := f.GetOptions().GetGoPackage()
	importPath, name, _ := strings.Cut(option, ";")
	pos := placeOf(f, []int32{8, goPackageOption})
	complain := func(format string, args ...any) {
		d := codegen.Diagnostic{Pos: pos, Near: `"` + option + `"`, Message: fmt.Sprintf(format, args...)}
		if line := c.paste(f); line != "" {
			d.Paste = []string{line}
		} else {
			d.Message = strings.TrimSuffix(strings.TrimSuffix(d.Message, "; add"), "; write")
		}
		c.found = append(c.found, d)
	}
	switch {
	case option == "" && generate:
		pos = placeOf(f, []int32{2})
		if pos.Line == 0 {
			pos.Line, pos.Column = 1, 1
		}
		complain("there is no go_package; add")
		c.found[len(c.found)-1].Near = ""
	case option == "":
		complain("the imported schema has no go_package, so its Go package is not known")
	case badImportPath(importPath) != "":
		complain("go_package: %q is no import path of Go: %s; write", importPath, badImportPath(importPath))
	case generate && importPath != c.module.Path && !strings.HasPrefix(importPath, c.module.Path+"/"):
		complain("go_package: %s is outside of module %s; write", importPath, c.module.Path)
	default:
		c.consistent(importPath, name, pos)
		if generate {
			c.alone(importPath, f.GetName(), pos)
		}
	}
}

// alone checks that no other schema generates the same file, and that no other
// package differs in case only: Go takes neither, and some file systems cannot
// hold them.
func (c *goPackageChecker) alone(importPath, schemaName string, pos codegen.Position) {
	clash := func(other named, format string, args ...any) {
		c.found = append(c.found, codegen.Diagnostic{Pos: pos, Message: fmt.Sprintf(format, args...), Other: other.pos})
	}
	have, taken := c.paths[strings.ToLower(importPath)]
	if taken && have.name != importPath {
		clash(have, "go_package: %s and %s differ in case only", importPath, have.name)
		return
	}
	c.paths[strings.ToLower(importPath)] = named{importPath, pos}
	file := importPath + "/" + strings.TrimSuffix(path.Base(schemaName), ".proto") + ".pb.go"
	have, taken = c.files[strings.ToLower(file)]
	if taken {
		clash(have, "go_package: %s would be generated twice (case does not count); rename the schema, or give it another package than %s", file, have.name)
		return
	}
	c.files[strings.ToLower(file)] = named{schemaName, pos}
}

// consistent checks that the schemas of one Go package agree on its name.
func (c *goPackageChecker) consistent(importPath, name string, pos codegen.Position) {
	if name == "" {
		name = sanitized(path.Base(importPath))
	}
	have, ok := c.names[importPath]
	if !ok {
		c.names[importPath] = named{name, pos}
		return
	}
	if have.name != name {
		c.found = append(c.found, codegen.Diagnostic{
			Pos:     pos,
			Message: fmt.Sprintf("go_package: package %s is named %s here and %s elsewhere", importPath, name, have.name),
			Other:   have.pos,
		})
	}
}

// badImportPath says why protobuf or Go do not take an import path, "" if both
// do: a dot or a slash tells it from a mere name.
func badImportPath(p string) string {
	if !strings.ContainsAny(p, "./") {
		return "there is neither a dot nor a slash in it"
	}
	if err := codegen.CheckImportPath(p); err != nil {
		return err.Error()
	}
	return ""
}

// paste returns the line that is missing, computed from go.mod: a folder gen beside
// the import root. It is "" where the schema's place is not known, not in the
// module, or none that Go takes.
func (c *goPackageChecker) paste(f *descriptorpb.FileDescriptorProto) string {
	s := c.sources[f.GetName()]
	if s == nil || !c.module.owns(filepath.Dir(s.disk)) {
		return ""
	}
	beside := strings.TrimSuffix(filepath.ToSlash(s.disk), "/"+s.name)
	if beside != filepath.ToSlash(c.module.Dir) {
		beside = path.Dir(beside)
	}
	importPath := path.Join(c.module.ImportPath(filepath.FromSlash(beside)), "gen", path.Dir(s.name))
	if badImportPath(importPath) != "" {
		return ""
	}
	return fmt.Sprintf("option go_package = \"%s;%s\";", importPath, packageName(f.GetPackage(), importPath))
}

// packageName makes a Go package's name of a protobuf package: the last word,
// with the one before it where the last is a version.
func packageName(pkg, importPath string) string {
	names := strings.Split(pkg, ".")
	last := names[len(names)-1]
	if len(names) > 1 && regexp.MustCompile(`^v\d+`).MatchString(last) {
		last = names[len(names)-2] + last
	}
	if last == "" {
		last = path.Base(importPath)
	}
	name := sanitized(strings.ToLower(strings.ReplaceAll(last, "_", "")))
	if name == "main" || name == "documentation" { // which Go takes for something else
		name += "pb"
	}
	return name
}

// sanitized makes an identifier of Go, as protoc-gen-go does.
func sanitized(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, s)
	if s == "" || token.IsKeyword(s) || '0' <= s[0] && s[0] <= '9' {
		return "_" + s
	}
	return s
}
