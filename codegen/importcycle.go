package codegen

import (
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
)

// importCycle refuses a target in a Go package that needs ours. The import of
// the target's file makes our messages' package import the target's, and Go,
// unlike protobuf, knows no cycles among packages.
func (l *loader) importCycle(file *protogen.File, target *Task) *refusal {
	from, to := file.GoImportPath, target.Service.File.GoImportPath
	if from == to {
		return nil
	}
	back := l.goPath(to, from, map[protogen.GoImportPath]bool{})
	if back == nil {
		return nil
	}
	way := make([]string, len(back))
	for i, p := range back {
		way[i] = string(p)
	}
	return refuse("%s makes a cycle of Go packages: %s imports %s; declare both tasks in one package, or move the messages they share to one of their own",
		target.FullName, string(from), strings.Join(way, ", which imports "))
}

// goPath returns the chain of Go packages by which one imports another, nil
// when it does not.
func (l *loader) goPath(from, to protogen.GoImportPath, seen map[protogen.GoImportPath]bool) []protogen.GoImportPath {
	if from == to {
		return []protogen.GoImportPath{to}
	}
	if seen[from] {
		return nil
	}
	seen[from] = true
	for _, dep := range l.goImports()[from] {
		if rest := l.goPath(dep, to, seen); rest != nil {
			return append([]protogen.GoImportPath{from}, rest...)
		}
	}
	return nil
}

// goImports returns what each Go package of messages imports.
func (l *loader) goImports() map[protogen.GoImportPath][]protogen.GoImportPath {
	if l.imported != nil {
		return l.imported
	}
	l.imported = map[protogen.GoImportPath][]protogen.GoImportPath{}
	for _, f := range l.gen.Files {
		list := f.Desc.Imports()
		for i := range list.Len() {
			dep := l.gen.FilesByPath[list.Get(i).Path()]
			if dep != nil && dep.GoImportPath != f.GoImportPath {
				l.imported[f.GoImportPath] = append(l.imported[f.GoImportPath], dep.GoImportPath)
			}
		}
	}
	return l.imported
}
