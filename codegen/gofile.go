package codegen

import (
	"fmt"
	"go/token"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
)

// CheckFile finds what makes the Go of a schema's messages unusable, whatever
// is generated for its tasks: a package name that is no Go identifier, a file
// name that Go builds on one system only.
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
	}
	name := path.Base(file.GeneratedFilenamePrefix)
	if system := buildSuffix(name); system != "" {
		add(Position{File: file.Desc.Path(), Line: 1, Column: 1}, "", "Go would build %s.pb.go on %s only; rename the schema so that it does not end in _%s", name, system, system)
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
