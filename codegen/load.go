package codegen

import (
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Load reads the task services out of a plugin's request and checks all rules
// of the language. It returns everything that is wrong at once, sorted, and the
// program as far as it makes sense; code may be generated from it only when the
// diagnostics hold no error.
//
// Diagnostics are about files to generate. What is wrong in an imported file is
// found by the run that generates it.
func Load(gen *protogen.Plugin) (*Program, Diagnostics) {
	l := &loader{gen: gen, program: &Program{}, tasks: map[protoreflect.FullName]*Task{}}
	for _, file := range gen.Files {
		l.foreignOptions(file)
		l.services(file)
	}
	for _, s := range l.program.Services {
		l.edges(s)
	}
	l.importCycles()
	l.wireNames()
	l.goNames()
	return l.program, l.found()
}

type loader struct {
	gen         *protogen.Plugin
	program     *Program
	tasks       map[protoreflect.FullName]*Task
	imported    map[protogen.GoImportPath][]protogen.GoImportPath
	cyclic      map[protogen.GoImportPath]bool // packages of cycles that are reported
	diagnostics Diagnostics
}

// found returns the diagnostics about files to generate, each once.
func (l *loader) found() Diagnostics {
	var out Diagnostics
	for _, d := range l.diagnostics {
		if f := l.gen.FilesByPath[d.Pos.File]; f != nil && f.Generate {
			out = append(out, d)
		}
	}
	out.Sort()
	return out
}

func (l *loader) report(pos Position, c complaint) {
	l.diagnostics = append(l.diagnostics, c.at(Error, pos))
}

func (l *loader) warn(pos Position, c complaint) {
	l.diagnostics = append(l.diagnostics, c.at(Warning, pos))
}

// clash reports that something is already taken, by what is at other.
func (l *loader) clash(pos, other Position, format string, args ...any) {
	l.report(pos, complaint{message: fmt.Sprintf(format, args...), other: other})
}

func (l *loader) errorf(pos Position, format string, args ...any) {
	l.report(pos, complaint{message: fmt.Sprintf(format, args...)})
}

// services reads the task services of one file.
func (l *loader) services(file *protogen.File) {
	var ordinary []*protogen.Service
	tasks := 0
	for _, desc := range file.Services {
		if !isTaskService(desc) {
			ordinary = append(ordinary, desc)
			continue
		}
		tasks++
		l.program.Services = append(l.program.Services, l.service(file, desc))
	}
	if tasks == 0 {
		return
	}
	l.diagnostics = append(l.diagnostics, CheckFile(file)...)
	for _, desc := range ordinary {
		l.warn(positionIn(file, desc.Location, anyName), complaint{message: fmt.Sprintf(
			"service %s is no task service but shares a file with one; other generators cannot leave task services out unless they have files of their own",
			desc.Desc.FullName())})
	}
}

func (l *loader) service(file *protogen.File, desc *protogen.Service) *Service {
	s := &Service{
		FullName:   desc.Desc.FullName(),
		GoName:     desc.GoName,
		File:       file,
		Generate:   file.Generate,
		Comment:    commentText(desc.Comments),
		Deprecated: desc.Desc.Options().(*descriptorpb.ServiceOptions).GetDeprecated() || fileDeprecated(file),
		Pos:        positionIn(file, desc.Location, anyName),
		desc:       desc,
	}
	s.place()
	defaults := serviceOptionSet(file, desc)
	s.Owner, _ = defaults.text("owner")
	policy := builtIn()
	l.apply(&policy, defaults)
	for _, m := range desc.Methods {
		l.task(s, m, policy)
	}
	return s
}

func fileDeprecated(file *protogen.File) bool {
	return file.Desc.Options().(*descriptorpb.FileOptions).GetDeprecated()
}

func (l *loader) task(s *Service, desc *protogen.Method, policy Policy) {
	t := &Task{
		Service:    s,
		FullName:   desc.Desc.FullName(),
		Name:       string(desc.Desc.FullName()),
		GoName:     desc.GoName,
		Payload:    desc.Input,
		Policy:     policy,
		Comment:    commentText(desc.Comments),
		Deprecated: desc.Desc.Options().(*descriptorpb.MethodOptions).GetDeprecated(),
		Owner:      s.Owner,
		Pos:        positionIn(s.File, desc.Location, anyName),
		desc:       desc,
	}
	s.Tasks = append(s.Tasks, t)
	l.tasks[t.FullName] = t
	l.shape(t)
	set := taskOptionSet(s.File, desc)
	l.apply(&t.Policy, set)
	l.names(t, set)
	l.keys(t, set)
	if owner, ok := set.text("owner"); ok {
		t.Owner = owner
	}
}

// shape refuses rpcs that cannot be tasks.
func (l *loader) shape(t *Task) {
	at := func(number int32) Position { return positionIn(t.Service.File, t.desc.Location, number) }
	if t.desc.Desc.IsStreamingClient() {
		l.errorf(at(methodClient), "task %s: a task takes one request, not a stream", t.desc.Desc.Name())
	}
	if t.desc.Desc.IsStreamingServer() {
		l.errorf(at(methodServer), "task %s: a task returns google.protobuf.Empty, not a stream", t.desc.Desc.Name())
	}
	if out := t.desc.Output.Desc.FullName(); out != "google.protobuf.Empty" {
		l.report(at(methodOutput), complaint{message: fmt.Sprintf(
			"task %s: a task returns google.protobuf.Empty, not %s: nobody waits for the answer of a job", t.desc.Desc.Name(), out)})
	}
}
