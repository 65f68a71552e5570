package codegen

import (
	"fmt"
	"go/token"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/protobuf/compiler/protogen"
)

// CheckFile finds what makes the Go of a schema's messages unusable, whatever
// is generated for its tasks: a package name that is no Go identifier, an
// import path that Go does not take, a file name that Go leaves out.
func CheckFile(file *protogen.File) Diagnostics {
	var out Diagnostics
	add := func(pos Position, near, format string, args ...any) {
		out = append(out, Diagnostic{Pos: pos, Near: near, Message: fmt.Sprintf(format, args...)})
	}
	goPackage := positionAt(file.Desc, []int32{fileOptions, fileOptionsGoPkg})
	written := `"` + file.Proto.GetOptions().GetGoPackage() + `"`
	switch name := string(file.GoPackageName); {
	case !token.IsIdentifier(name) || name == "_":
		add(goPackage, written, "go_package: %q is no name for a Go package", name)
	case name == "main":
		add(goPackage, written, "go_package: package main cannot be imported")
	case name == "documentation":
		add(goPackage, written, "go_package: Go leaves out the files of a package documentation; name it otherwise, behind a semicolon")
	}
	if err := CheckImportPath(string(file.GoImportPath)); err != nil {
		add(goPackage, written, "go_package: %q is no import path of Go: %v", string(file.GoImportPath), err)
	}
	if bad := badFileName(file.GeneratedFilenamePrefix); bad != "" {
		add(Position{File: file.Desc.Path(), Line: 1, Column: 1}, "", "%s", bad)
	}
	for i, dep := range file.Proto.GetWeakDependency() {
		out = append(out, Diagnostic{
			Severity: Warning,
			Pos:      positionAt(file.Desc, []int32{fileWeakDependency, int32(i)}),
			Message:  fmt.Sprintf("import weak %q: Go has no weak imports any more; drop the word", file.Proto.GetDependency()[dep]),
		})
	}
	return out
}

// badFileName says why the Go of a schema would be left out for its file's name,
// "" if it is not.
func badFileName(prefix string) string {
	name := prefix[strings.LastIndexByte(prefix, '/')+1:]
	first, system := (name + ".")[:1], buildSuffix(name)
	switch {
	case system != "":
		return fmt.Sprintf("Go would build %s.pb.go on %s only; rename the schema so that it does not end in _%s", name, system, system)
	case strings.Contains("._-", first):
		return fmt.Sprintf("Go leaves out files like %s.pb.go; rename the schema so that it does not begin with %s", name, first)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Sprintf("the file name %q has a control character, and stands in a comment of the generated code", name)
	}
	return ""
}

// buildSuffix returns the operating system or architecture that the go tool
// reads out of a file name, "" if none. It reads up to the first dot.
func buildSuffix(name string) string {
	name, _, _ = strings.Cut(name, ".")
	words := strings.Split(name, "_")[1:]
	if n := len(words); n > 0 && words[n-1] == "test" {
		words = words[:n-1]
	}
	if len(words) == 0 {
		return ""
	}
	last := words[len(words)-1]
	if slices.Contains(systems(), last) {
		return last
	}
	return ""
}

// systems are the words that the go tool knows at the end of a file name, past
// and future ones included.
func systems() []string {
	return strings.Fields(`
		aix android darwin dragonfly freebsd hurd illumos ios js linux nacl
		netbsd openbsd plan9 solaris wasip1 windows zos
		386 amd64 amd64p32 arm armbe arm64 arm64be loong64 mips mipsle mips64
		mips64le mips64p32 mips64p32le ppc ppc64 ppc64le riscv riscv64 s390
		s390x sparc sparc64 wasm`)
}
