package codegen

import (
	"fmt"
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
	l.markCycle(back)
	return refuse("%s makes a cycle of Go packages: %s imports %s; declare both tasks in one package, or move the messages they share to one of their own",
		target.FullName, string(from), wayOf(back))
}

// importCycles finds the cycles that no then makes, each once, at the first
// import on its way.
func (l *loader) importCycles() {
	for _, f := range l.gen.Files {
		list := f.Desc.Imports()
		for i := range list.Len() {
			dep := l.gen.FilesByPath[list.Get(i).Path()]
			if !f.Generate || dep == nil || dep.GoImportPath == f.GoImportPath || l.cyclic[f.GoImportPath] && l.cyclic[dep.GoImportPath] {
				continue
			}
			if back := l.goPath(dep.GoImportPath, f.GoImportPath, map[protogen.GoImportPath]bool{}); back != nil {
				l.markCycle(back)
				l.report(positionAt(f.Desc, []int32{fileDependency, int32(i)}), complaint{
					near: `"` + list.Get(i).Path() + `"`,
					message: fmt.Sprintf("the import makes a cycle of Go packages: %s imports %s; give schemas that need each other one go_package, or move what they share to one of its own",
						string(f.GoImportPath), wayOf(back)),
				})
			}
		}
	}
}

func (l *loader) markCycle(packages []protogen.GoImportPath) {
	if l.cyclic == nil {
		l.cyclic = map[protogen.GoImportPath]bool{}
	}
	for _, p := range packages {
		l.cyclic[p] = true
	}
}

func wayOf(packages []protogen.GoImportPath) string {
	way := make([]string, len(packages))
	for i, p := range packages {
		way[i] = string(p)
	}
	return strings.Join(way, ", which imports ")
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
