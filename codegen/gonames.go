package codegen

import (
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
)

const (
	packageSuffix = "tasks"
	outFile       = "tasks.backstage.go"
	longestFolder = 255
)

// place decides which Go package a service becomes: its name in lower case with
// "tasks" behind it unless it ends so, in a folder below its messages, where it
// collides with nothing and can be imported without a cycle.
func (s *Service) place() {
	name := strings.ToLower(strings.ReplaceAll(s.GoName, "_", ""))
	if !strings.HasSuffix(name, packageSuffix) {
		name += packageSuffix
	}
	s.GoPackage = name
	s.GoImportPath = s.File.GoImportPath + protogen.GoImportPath("/"+name)
	s.OutFile = path.Join(path.Dir(s.File.GeneratedFilenamePrefix), name, outFile)
}

// goNames checks that everything that is generated has a Go name of its own.
func (l *loader) goNames() {
	l.packageNames()
	for _, s := range l.program.Services {
		l.taskNames(s)
	}
}

func (l *loader) packageNames() {
	services := map[protogen.GoImportPath]*Service{}
	messages := map[protogen.GoImportPath]*protogen.File{}
	for _, f := range l.gen.Files {
		messages[f.GoImportPath] = f
	}
	for _, s := range l.program.Services {
		if n := len(s.GoPackage); n > longestFolder {
			l.errorf(s.Pos, "service %s needs a folder with a name of %d bytes; file systems take %d", s.desc.Desc.Name(), n, longestFolder)
		}
		if f := messages[s.GoImportPath]; f != nil {
			l.errorf(s.Pos, "service %s becomes Go package %s, which is already that of the messages in %s",
				s.desc.Desc.Name(), string(s.GoImportPath), f.Desc.Path())
		}
		other := services[s.GoImportPath]
		if other == nil {
			services[s.GoImportPath] = s
			continue
		}
		if !s.Generate {
			s, other = other, s
		}
		l.clash(s.Pos, other.Pos, "service %s becomes Go package %s, and so does %s",
			s.desc.Desc.Name(), string(s.GoImportPath), other.FullName)
	}
}

// taskNames checks the names that the tasks of one service declare in its Go
// package. Two rpcs may differ in protobuf and be one name in Go.
func (l *loader) taskNames(s *Service) {
	tasks := map[string]*Task{}
	declared := map[string]*Task{}
	for _, name := range packageDeclarations() {
		declared[name] = nil
	}
	for _, t := range s.Tasks {
		if slices.Contains(methodsOfGo(), t.GoName) {
			l.errorf(t.Pos, "task %s becomes a method %s in Go, which go vet takes for that of an interface of the standard library; give the rpc another name",
				t.desc.Desc.Name(), t.GoName)
		}
		if other := tasks[t.GoName]; other != nil {
			l.clash(t.Pos, other.Pos, "task %s is %s in Go, and so is %s", t.desc.Desc.Name(), t.GoName, other.FullName)
			continue
		}
		tasks[t.GoName] = t
		for _, name := range t.declarations() {
			other, taken := declared[name]
			switch {
			case !taken:
				declared[name] = t
			case other == nil:
				l.errorf(t.Pos, "task %s declares %s in Go, which every task service declares", t.desc.Desc.Name(), name)
			case other != t:
				l.clash(t.Pos, other.Pos, "task %s declares %s in Go, and so does %s", t.desc.Desc.Name(), name, other.FullName)
			}
		}
	}
}

// packageDeclarations are the names that every generated package declares.
func packageDeclarations() []string {
	return []string{"Client", "NewClient", "Handler", "Register"}
}

// declarations are the names that a task adds to them. A task without edges
// has no Next, but keeps the name, so that its first edge breaks nothing.
func (t *Task) declarations() []string {
	return []string{"Register" + t.GoName, t.GoName + "Job", t.GoName + "Next", t.GoName + "Name"}
}

// methodsOfGo are the methods whose parameters go vet checks in every type that
// has one of the name, ours and the users' handlers alike.
func methodsOfGo() []string {
	return strings.Fields(`GobDecode GobEncode MarshalJSON MarshalXML ReadByte ReadRune
		UnmarshalJSON UnmarshalXML UnreadByte UnreadRune WriteByte`)
}
