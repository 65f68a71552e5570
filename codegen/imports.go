package codegen

import (
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"
	"google.golang.org/protobuf/compiler/protogen"
)

const runtimePath = "github.com/backstage-go/backstage/runtime"

// importNames gives every imported package its plain name. Only a name that means
// something else in the file gets a "_" behind it: names show in the docs of
// everybody who uses the generated code.
type importNames struct {
	file  *jen.File
	taken map[string]bool
	alias map[string]string // by import path
}

func newImportNames(file *jen.File, declared []string) *importNames {
	im := &importNames{file: file, taken: map[string]bool{}, alias: map[string]string{}}
	for _, name := range slices.Concat(declared, localNames(), types.Universe.Names()) {
		im.taken[name] = true
	}
	for _, std := range []string{"context", "time"} {
		im.add(std, std)
	}
	im.add(runtimePath, "backstage")
	return im
}

// localNames are the parameters and variables of generated code, and init, which
// Go lets no import be named.
func localNames() []string {
	return []string{"c", "ctx", "enqueuer", "err", "handle", "handler", "in", "init", "n", "next", "opts", "worker"}
}

// add names a package, the first time that it is used.
func (im *importNames) add(importPath, name string) {
	if im.alias[importPath] != "" {
		return
	}
	for im.taken[name] || token.IsKeyword(name) {
		name += "_"
	}
	im.taken[name] = true
	im.alias[importPath] = name
	if name == path.Base(importPath) {
		im.file.ImportName(importPath, name)
	} else {
		im.file.ImportAlias(importPath, name)
	}
}

func (im *importNames) message(m *protogen.Message, file *protogen.File) *jen.Statement {
	im.add(string(m.GoIdent.GoImportPath), string(file.GoPackageName))
	return jen.Op("*").Qual(string(m.GoIdent.GoImportPath), m.GoIdent.GoName)
}

// backstage refers to something of the runtime.
func backstage(name string) *jen.Statement {
	return jen.Qual(runtimePath, name)
}

// groupImports puts the standard library first, as gofmt's users write it.
func groupImports(source string) string {
	const open, end = "import (\n", "\n)\n"
	before, rest, found := strings.Cut(source, open)
	block, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return source
	}
	var std, others []string
	for line := range strings.SplitSeq(block, "\n") {
		if strings.Contains(line, ".") {
			others = append(others, line)
		} else {
			std = append(std, line)
		}
	}
	return before + open + strings.Join(std, "\n") + "\n\n" + strings.Join(others, "\n") + end + after
}
