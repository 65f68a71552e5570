package codegen

import (
	"bytes"
	"fmt"

	"github.com/dave/jennifer/jen"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// Generate writes one Go package for each task service of the files that a
// plugin was asked to generate. It serves protoc and buf, which talk to a plugin
// by stdin, and backstage generate, which calls it in its own process, alike.
// The error has everything that is wrong with the schemas, as [Diagnostics];
// then nothing is written.
func Generate(gen *protogen.Plugin) error {
	DeclareSupport(gen)
	program, diagnostics := Load(gen)
	if errs := diagnostics.Errors(); errs != nil {
		return errs
	}
	return program.Emit(gen)
}

// DeclareSupport says which versions of the language the generator knows. It is
// declared before anything can fail, because a compiler that believes otherwise
// reports that in place of our error.
func DeclareSupport(gen *protogen.Plugin) {
	gen.SupportedFeatures = uint64(pluginpb.CodeGeneratorResponse_FEATURE_PROTO3_OPTIONAL |
		pluginpb.CodeGeneratorResponse_FEATURE_SUPPORTS_EDITIONS)
	gen.SupportedEditionsMinimum = descriptorpb.Edition_EDITION_PROTO2
	gen.SupportedEditionsMaximum = descriptorpb.Edition_EDITION_2024
}

// Emit writes the packages of a program that was loaded from the same plugin
// without errors.
func (p *Program) Emit(gen *protogen.Plugin) error {
	for _, s := range p.Services {
		if !s.Generate {
			continue
		}
		if err := s.Emit(gen); err != nil {
			return err
		}
	}
	return nil
}

// Emit writes the service's package.
func (s *Service) Emit(gen *protogen.Plugin) error {
	if len(s.Tasks) == 0 {
		return nil
	}
	source, err := newEmitter(gen, s).source()
	if err != nil {
		return fmt.Errorf("generate %s: %w", s.OutFile, err)
	}
	g := gen.NewGeneratedFile(s.OutFile, s.GoImportPath)
	g.AnnotateSymbol("Client", protogen.Annotation{Location: s.desc.Location})
	for _, t := range s.Tasks {
		g.AnnotateSymbol("Client."+t.GoName, protogen.Annotation{Location: t.desc.Location})
	}
	_, err = g.Write([]byte(source))
	return err
}

// An emitter writes the file of one service.
type emitter struct {
	gen     *protogen.Plugin
	service *Service
	file    *jen.File
	imports *importNames
	// specs names the functions that return a task's backstage.Task: one for
	// each task of the service, and one for each foreign task that may follow.
	specs   map[*Task]string
	foreign []*Task
	// deprecated says that the file uses what is deprecated.
	deprecated bool
}

func newEmitter(gen *protogen.Plugin, s *Service) *emitter {
	file := jen.NewFilePathName(string(s.GoImportPath), s.GoPackage)
	file.NoFormat = true // protogen prints what it is given anew
	e := &emitter{gen: gen, service: s, file: file}
	e.nameSpecs()
	e.imports = newImportNames(file, e.declared())
	return e
}

// declared are all names that the file declares.
func (e *emitter) declared() []string {
	names := packageDeclarations()
	for _, t := range e.service.Tasks {
		names = append(names, t.declarations()...)
	}
	for _, name := range e.specs {
		names = append(names, name)
	}
	return names
}

func (e *emitter) source() (string, error) {
	e.header()
	e.handshake()
	e.wireNames()
	e.client()
	e.handler()
	for _, t := range e.service.Tasks {
		e.task(t)
	}
	for _, t := range e.foreign {
		e.spec(t)
	}
	if e.deprecated {
		e.file.HeaderComment("//lint:file-ignore SA1019 what a schema deprecates stays in use while its tasks do")
	}
	var b bytes.Buffer
	if err := e.file.Render(&b); err != nil {
		return "", err
	}
	return groupImports(b.String()), nil
}

// declare writes a declaration with its comment and an empty line.
func (e *emitter) declare(doc string, code ...jen.Code) {
	if doc != "" {
		e.file.Add(comment(doc))
	}
	e.file.Add(code...)
	e.file.Line()
}

// message refers to a message's type in Go, a pointer.
func (e *emitter) message(m *protogen.Message) *jen.Statement {
	file := e.gen.FilesByPath[m.Location.SourceFile]
	e.deprecated = e.deprecated || fileDeprecated(file) || m.Desc.Options().(*descriptorpb.MessageOptions).GetDeprecated()
	return e.imports.message(m, file)
}
