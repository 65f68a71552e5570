package compile

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/backstage-go/backstage/codegen"
)

// Options say which schemas to load. The zero value loads those of the module
// around the working directory.
type Options struct {
	// Dir is the working directory, which relative paths start from and places
	// are printed relative to. Defaults to the process'.
	Dir string
	// Roots are import roots: folders, or Go modules by their path. Folders of
	// this module are generated, others only serve imports. Defaults to the
	// roots of backstage.yaml, else the modules of buf.yaml, else what the
	// schemas' packages say.
	Roots []string
	// Imports are more folders and Go modules that only serve imports.
	Imports []string
	// DescriptorSet is a file to load in place of sources: the output of buf
	// build, or of protoc with --include_imports and --include_source_info.
	DescriptorSet string
}

// A Project is the schemas of a module, compiled and checked.
type Project struct {
	// Tasks are the task services and everything about them. It is nil when the
	// schemas do not compile.
	Tasks *codegen.Program
	// Diagnostics is everything that is wrong or odd, sorted, with places
	// relative to the working directory.
	Diagnostics codegen.Diagnostics
	// Dir is the root of the module, which generated files are relative to.
	Dir string
	// Schemas are the names of the schemas to generate, as others import them.
	Schemas []string

	cwd     string
	module  *module
	roots   *roots
	sources sources
	request *pluginpb.CodeGeneratorRequest
	plugin  *protogen.Plugin
	unused  []unusedImport
}

// Load finds, compiles and checks the schemas of a module. What is wrong with
// them is in the project's Diagnostics; the error is about what keeps them from
// being looked at, such as a missing go.mod.
func Load(ctx context.Context, o Options) (*Project, error) {
	cwd, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(cwd); err != nil {
		return nil, err // else the module above would be taken for that of a folder that is not there
	}
	m, err := findModule(cwd)
	if err != nil {
		return nil, err
	}
	p := &Project{Dir: m.Dir, cwd: cwd, module: m, roots: &roots{}}
	if o.DescriptorSet != "" {
		err = p.readSet(o.DescriptorSet)
	} else {
		err = p.readRoots(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	p.localize()
	return p, nil
}

func (p *Project) readSet(name string) error {
	if !filepath.IsAbs(name) {
		name = filepath.Join(p.cwd, name)
	}
	request, err := requestOfSet(name, p.module)
	p.request = request
	for _, f := range request.GetSourceFileDescriptors() {
		p.Diagnostics = append(p.Diagnostics, newDirectiveFinder().inDescriptor(f)...)
	}
	return err
}

// readRoots stops at the first step that finds an error, because the later ones
// need what the earlier ones have read.
func (p *Project) readRoots(ctx context.Context, o Options) error {
	found, diagnostics, err := findRoots(ctx, o, p.cwd, p.module)
	if err != nil || len(diagnostics) > 0 {
		p.Diagnostics = diagnostics
		return err
	}
	p.roots = found
	s, diagnostics, err := readSources(found, p.module)
	if err != nil {
		return err
	}
	if len(s) == 0 {
		return p.withoutSchemas()
	}
	p.sources, p.Schemas = s, s.names()
	copies, err := p.strangeCopies()
	if err != nil {
		return err
	}
	links, err := p.behindLinks()
	if err != nil {
		return err
	}
	diagnostics = slices.Concat(diagnostics, copies, links)
	r := newResolver(found, s, p.cwd)
	for _, name := range s.names() {
		if s[name].tree != nil {
			diagnostics = append(diagnostics, r.imports(s[name])...)
		}
	}
	diagnostics = append(diagnostics, s.importCycles()...)
	p.Diagnostics = diagnostics
	if len(diagnostics.Errors()) > 0 {
		return nil
	}
	c := &collector{}
	request, diagnostics, err := compileSources(ctx, r, c)
	p.Diagnostics = append(p.Diagnostics, diagnostics...)
	p.request, p.unused = request, c.unused
	s.dropTrees()
	return err
}

func searchedIn(r *roots, cwd string) string {
	text := ""
	for _, root := range r.list {
		text += ", import root " + relative(cwd, root.dir)
	}
	return text
}

// check runs all checks on compiled schemas.
func (p *Project) check() error {
	if p.request == nil || len(p.Diagnostics.Errors()) > 0 {
		return nil
	}
	p.Schemas = p.request.FileToGenerate
	p.Diagnostics = append(p.Diagnostics, goPackages(p.request, p.sources, p.module)...)
	if len(p.Diagnostics.Errors()) > 0 {
		return nil
	}
	plugin, err := newPlugin(p.request)
	if err != nil {
		return err
	}
	program, diagnostics := codegen.Load(plugin)
	p.plugin, p.Tasks = plugin, program
	p.Diagnostics = append(p.Diagnostics, diagnostics...)
	for _, file := range plugin.Files {
		if file.Generate {
			p.Diagnostics = append(p.Diagnostics, codegen.CheckFile(file)...)
		}
	}
	p.Diagnostics = append(p.Diagnostics, goIdents(plugin.Files)...)
	p.Diagnostics = append(p.Diagnostics, p.withoutTasks()...)
	return nil
}

// localize names files as the user sees them from the working directory, so
// that an editor opens them, and drops what two checks found alike.
func (p *Project) localize() {
	for i := range p.Diagnostics {
		d := &p.Diagnostics[i]
		d.Pos = p.Locate(d.Pos)
		d.Other = p.Locate(d.Other)
	}
	p.Diagnostics.Narrow(p.read)
	p.Diagnostics.Sort()
	p.Diagnostics = slices.CompactFunc(p.Diagnostics, func(a, b codegen.Diagnostic) bool {
		return a.Pos == b.Pos && a.Message == b.Message
	})
}

// Locate returns a position in a schema with the file as it is printed, relative
// to the working directory.
func (p *Project) Locate(pos codegen.Position) codegen.Position {
	pos.File = p.shown(pos.File)
	return pos
}

// shown returns how a schema is printed. Without sources its name is all that
// is known.
func (p *Project) shown(name string) string {
	if s := p.sources[name]; s != nil {
		return relative(p.cwd, s.disk)
	}
	return name
}

// Report prints the diagnostics with the lines of source that they are about.
func (p *Project) Report(w io.Writer) error {
	return p.Diagnostics.Render(w, p.read)
}

// read returns the content of a file that is named as it is printed.
func (p *Project) read(file string) (string, bool) {
	if !filepath.IsAbs(file) {
		file = filepath.Join(p.cwd, file)
	}
	text, err := os.ReadFile(file)
	return string(text), err == nil
}

// A File is a generated file, named relative to the module's root with slashes.
type File struct {
	Name    string
	Content string
}

// Generate returns all files of the project: the messages' as protoc-gen-go
// writes them, and a package for each task service. Schemas with errors generate
// nothing; the error is their [codegen.Diagnostics] then.
func (p *Project) Generate() ([]File, error) {
	if errs := p.Diagnostics.Errors(); errs != nil {
		return nil, errs
	}
	messages, err := p.GenerateMessages()
	if err != nil {
		return nil, err
	}
	tasks, err := p.generate("protoc-gen-backstage", p.plugin, p.emitTasks)
	return append(messages, tasks...), err
}

// GenerateMessages returns the messages' files alone.
func (p *Project) GenerateMessages() ([]File, error) {
	if errs := p.Diagnostics.Errors(); errs != nil {
		return nil, errs
	}
	plugin := p.plugin
	if slices.ContainsFunc(plugin.Files, isHybrid) {
		own, err := newPlugin(p.request)
		if err != nil {
			return nil, err
		}
		plugin = own
	}
	return p.generate("protoc-gen-go", plugin, generateMessages)
}

// generate runs a generator and returns its files, placed in the module.
func (p *Project) generate(name string, plugin *protogen.Plugin, generate generator) ([]File, error) {
	files, err := runPlugin(name, plugin, generate)
	if err != nil {
		return nil, err
	}
	return place(files, p.module)
}

// emitTasks generates the task services of one schema.
func (p *Project) emitTasks(gen *protogen.Plugin, file *protogen.File) error {
	codegen.DeclareSupport(gen)
	for _, s := range p.Tasks.Services {
		if s.File != file {
			continue
		}
		if err := s.Emit(gen); err != nil {
			return err
		}
	}
	return nil
}

// Request returns what a plugin is asked with, for those who run one of their
// own over the project's schemas. It is nil when they do not compile.
func (p *Project) Request() *pluginpb.CodeGeneratorRequest { return p.request }
