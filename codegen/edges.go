package codegen

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// edges resolves the then options of a service's tasks.
func (l *loader) edges(s *Service) {
	for _, t := range s.Tasks {
		o := taskOptionSet(s.File, t.desc)
		for i, name := range o.texts("then") {
			target, c := l.target(t, name)
			if c != nil {
				l.diagnostics = append(l.diagnostics, c.at(o, name, i))
				continue
			}
			l.edge(t, target, o, name, i)
		}
	}
}

func (l *loader) edge(t, target *Task, o optionSet, name string, index int) {
	e := &Edge{Task: t, Target: target, GoName: target.GoName, Pos: o.at("then", index)}
	if target.Service != t.Service {
		e.GoName = target.Service.GoName + target.GoName
	}
	for _, other := range t.Edges {
		switch {
		case other.Target == target:
			l.reportOption(o, "then", name, complaint{message: fmt.Sprintf("%s follows already", target.FullName), other: other.Pos}, index)
			return
		case other.GoName == e.GoName:
			l.reportOption(o, "then", name, complaint{other: other.Pos, message: fmt.Sprintf(
				"%s would be method %s of %sNext, and so would %s", target.FullName, e.GoName, t.GoName, other.Target.FullName)}, index)
			return
		}
	}
	t.Edges = append(t.Edges, e)
}

// A refusal is a complaint about a target, with lines that would help.
type refusal struct {
	complaint
	paste []string
}

func refuse(format string, args ...any) *refusal {
	return &refusal{complaint: complaint{message: fmt.Sprintf(format, args...)}}
}

func (r *refusal) at(o optionSet, name string, index int) Diagnostic {
	d := o.complaint("then", name, r.complaint).at(Error, o.at("then", index))
	d.Paste = r.paste
	return d
}

// target finds the task that a then names, innermost first: a task of the
// service, Service.Task of the package, a full name.
func (l *loader) target(t *Task, name string) (*Task, *refusal) {
	target := l.lookup(t, name)
	if target == nil {
		return nil, l.unknownTarget(t, name)
	}
	if r := l.unimported(t.Service.File, target); r != nil {
		return nil, r
	}
	return target, l.importCycle(t.Service.File, target)
}

func (l *loader) lookup(t *Task, name string) *Task {
	for _, scope := range scopes(t, name) {
		if found := l.tasks[scope]; found != nil {
			return found
		}
	}
	return nil
}

// scopes are the full names that a then may mean, innermost first.
func scopes(t *Task, name string) []protoreflect.FullName {
	if !strings.Contains(name, ".") {
		return []protoreflect.FullName{t.Service.FullName.Append(protoreflect.Name(name))}
	}
	return qualified(t, name)
}

// qualified are the full names that a name in the package of a task may mean. A
// leading dot says that it is full.
func qualified(t *Task, name string) []protoreflect.FullName {
	full, pkg := protoreflect.FullName(strings.TrimPrefix(name, ".")), t.Service.File.Desc.Package()
	if strings.HasPrefix(name, ".") || pkg == "" {
		return []protoreflect.FullName{full}
	}
	return []protoreflect.FullName{pkg + "." + full, full}
}

func (l *loader) unknownTarget(t *Task, name string) *refusal {
	if rpc := l.ordinaryRPC(t, name); rpc != "" {
		return refuse("%s is no task: its service has no (backstage.v1.defaults) and none of its rpcs (backstage.v1.task)", rpc)
	}
	if other := l.onWire(name); other != nil {
		r := refuse("%q is a name on the wire; then takes that of the rpc", name)
		r.hint = fmt.Sprintf("did you mean %q?", t.written(other))
		return r
	}
	service, task, dotted := cutLast(name)
	if !dotted {
		return l.noTask(t, task, t.Service)
	}
	for _, scope := range qualified(t, service) {
		if s := l.program.Service(scope); s != nil {
			return l.noTask(t, task, s)
		}
	}
	r := refuse("no task %q", name)
	r.hint = didYouMean(name, l.writableNames(t))
	if r.hint == "" {
		r.hint = l.elsewhere(t, name)
	}
	return r
}

func (l *loader) noTask(t *Task, task string, s *Service) *refusal {
	var names []string
	for _, other := range s.Tasks {
		names = append(names, string(other.FullName.Name()))
	}
	r := refuse("no task %q in %s", task, s.FullName)
	if near := Nearest(task, names); near != "" {
		r.hint = fmt.Sprintf("did you mean %q?", t.written(s.task(near)))
	} else {
		r.hint = l.elsewhere(t, task)
	}
	return r
}

// onWire returns the task that has a name on the wire, nil if none has it.
func (l *loader) onWire(name string) *Task {
	for _, t := range l.program.Tasks() {
		if t.Name == name || slices.Contains(t.Aliases, name) {
			return t
		}
	}
	return nil
}

// elsewhere suggests a task whose full name ends so.
func (l *loader) elsewhere(t *Task, end string) string {
	for _, other := range l.program.Tasks() {
		if end != "" && strings.HasSuffix(string(other.FullName), "."+end) {
			return fmt.Sprintf("did you mean %q?", t.written(other))
		}
	}
	return ""
}

// written is the shortest name of another task in a then of this one.
func (t *Task) written(other *Task) string {
	pkg := t.Service.File.Desc.Package()
	switch {
	case other.Service == t.Service:
		return string(other.FullName.Name())
	case other.Service.File.Desc.Package() == pkg && pkg != "":
		return strings.TrimPrefix(string(other.FullName), string(pkg)+".")
	}
	return string(other.FullName)
}

// ordinaryRPC returns the full name of the rpc of an ordinary service that a
// then names, "" if it names none.
func (l *loader) ordinaryRPC(t *Task, name string) protoreflect.FullName {
	for _, scope := range scopes(t, name) {
		for _, f := range l.gen.Files {
			for _, s := range f.Services {
				if s.Desc.FullName() == scope.Parent() && s.Desc.Methods().ByName(scope.Name()) != nil {
					return scope
				}
			}
		}
	}
	return ""
}

// writableNames returns how every task could be written in a then of t.
func (l *loader) writableNames(t *Task) []string {
	var out []string
	pkg := t.Service.File.Desc.Package()
	for _, other := range l.program.Tasks() {
		name := string(other.FullName)
		if other.Service.File.Desc.Package() == pkg && pkg != "" {
			out = append(out, strings.TrimPrefix(name, string(pkg)+"."))
		}
		out = append(out, name)
	}
	return out
}

func cutLast(name string) (before, after string, found bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+1:], true
}

// unimported refuses a target whose file the schema does not import. The
// command sees every file of a module and a plugin only those imported, so
// without the rule a schema would pass in one and fail in the other.
func (l *loader) unimported(file *protogen.File, target *Task) *refusal {
	want := target.Service.File.Desc.Path()
	if file.Desc.Path() == want || importsFile(file.Desc, want) {
		return nil
	}
	r := refuse("%s is declared in %s, which is not imported; add", target.FullName, want)
	r.paste = []string{
		"// buf:lint:ignore IMPORT_USED",
		fmt.Sprintf("import %q;", want),
	}
	return r
}

func importsFile(file protoreflect.FileDescriptor, path string) bool {
	list := file.Imports()
	for i := range list.Len() {
		if list.Get(i).Path() == path || publicly(list.Get(i).FileDescriptor, path) {
			return true
		}
	}
	return false
}

func publicly(file protoreflect.FileDescriptor, path string) bool {
	list := file.Imports()
	for i := range list.Len() {
		imp := list.Get(i)
		if imp.IsPublic && (imp.Path() == path || publicly(imp.FileDescriptor, path)) {
			return true
		}
	}
	return false
}
