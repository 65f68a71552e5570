package compile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/backstage-go/backstage/codegen"
)

// Descriptors compiles schemas for a program that only reads messages by them. They
// may lie anywhere: no Go module is needed, and what the generator alone demands
// (go_package, names on the wire that are taken once) is not checked. The set has
// everything that they import, each file after its imports.
//
// Paths are .proto files, or folders of them. A schema is imported by its path below
// the first of imports that it lies in; one that lies in none has its root where
// its package says, else in its own folder. What is wrong with the schemas is in
// the diagnostics, with places relative to the working directory; the error is
// about what could not be read.
func Descriptors(ctx context.Context, paths, imports []string) (*descriptorpb.FileDescriptorSet, codegen.Diagnostics, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	l := &loose{cwd: cwd, roots: &roots{}, sources: sources{}}
	for _, dir := range imports {
		if err := l.addImport(dir); err != nil {
			return nil, nil, err
		}
	}
	for _, path := range paths {
		if err := l.add(path); err != nil {
			return nil, nil, err
		}
	}
	set, found, err := l.compile(ctx)
	for i := range found {
		if s := l.sources[found[i].Pos.File]; s != nil {
			found[i].Pos.File = relative(cwd, s.disk)
		}
	}
	found.Sort()
	return set, found, err
}

// loose are schemas that belong to no module.
type loose struct {
	cwd     string
	roots   *roots
	sources sources
}

func (l *loose) addImport(given string) error {
	dir, err := filepath.Abs(given)
	if err != nil {
		return err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("import root %s is no folder", given)
	}
	l.roots.list = append(l.roots.list, root{dir: dir})
	return nil
}

// add adds a schema, or all of a folder.
func (l *loose) add(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return l.addFile(path)
	}
	files, err := findSchemas(path, nil)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no schema (*.proto) in %s", relative(l.cwd, path))
	}
	for _, file := range files {
		if err := l.addFile(file); err != nil {
			return err
		}
	}
	return nil
}

func (l *loose) addFile(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	dir := l.rootOf(file, string(text))
	s, err := readSource(dir, file)
	if err != nil || isOurs(s.name, &module{}) {
		return err
	}
	if other := l.sources[s.name]; other != nil && other.disk != s.disk {
		return fmt.Errorf("%s and %s are both imported as %s; leave one of them away", relative(l.cwd, other.disk), relative(l.cwd, file), s.name)
	}
	l.sources[s.name] = s
	return nil
}

// rootOf returns the folder that a schema is imported from, and remembers it for
// what others import.
func (l *loose) rootOf(file, text string) string {
	for _, root := range l.roots.list {
		if within(root.dir, file) && root.why == "" {
			return root.dir
		}
	}
	dir := filepath.Dir(file)
	if pkg := packageOf(text); pkg != "" {
		if above, ok := minusPackage(dir, pkg); ok {
			dir = above
		}
	}
	l.roots.addInferred(dir, "a schema lies below it")
	return dir
}

// compile stops at the first step that finds an error, as a project does.
func (l *loose) compile(ctx context.Context) (*descriptorpb.FileDescriptorSet, codegen.Diagnostics, error) {
	var found codegen.Diagnostics
	for _, name := range l.sources.names() {
		found = append(found, l.sources[name].parseTree()...)
	}
	if len(found) > 0 {
		return nil, found, nil
	}
	r := newResolver(l.roots, l.sources, l.cwd)
	for _, name := range l.sources.names() {
		found = append(found, r.imports(l.sources[name])...)
	}
	if found = append(found, l.sources.importCycles()...); len(found) > 0 {
		return nil, found, nil
	}
	request, found, err := compileSources(ctx, r, &collector{})
	if err != nil || len(found) > 0 {
		return nil, found, err
	}
	return &descriptorpb.FileDescriptorSet{File: request.GetProtoFile()}, nil, nil
}
