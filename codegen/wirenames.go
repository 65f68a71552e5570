package codegen

import (
	"fmt"
	"slices"
)

// names reads a task's name on the wire and its aliases.
func (l *loader) names(t *Task, o optionSet) {
	if name, ok := o.text("name"); ok {
		if bad := badName(name); bad != "" {
			l.reportOption(o, "name", name, complaint{message: bad})
		} else {
			t.Name = name
		}
	}
	for i, alias := range o.texts("aliases") {
		switch bad := badName(alias); {
		case bad != "":
			l.reportOption(o, "aliases", alias, complaint{message: bad}, i)
		case alias == t.Name:
			l.reportOption(o, "aliases", alias, complaint{message: fmt.Sprintf("%q is the task's own name", alias)}, i)
		case slices.Contains(t.Aliases, alias):
			l.reportOption(o, "aliases", alias, complaint{message: fmt.Sprintf("%q stands twice", alias)}, i)
		default:
			t.Aliases = append(t.Aliases, alias)
		}
	}
}

// A claimed is a task that answers to a name, and where that was written.
type claimed struct {
	task  *Task
	pos   Position
	near  string
	alias bool
}

// wireNames checks that every name on the wire, alias or not, belongs to one
// task. A plugin sees one directory at a time, so the runtime repeats this when
// handlers are registered.
func (l *loader) wireNames() {
	owner := map[string]claimed{}
	for _, t := range l.program.Tasks() {
		l.claim(owner, t.Name, l.nameClaim(t))
	}
	for _, t := range l.program.Tasks() {
		o := taskOptionSet(t.Service.File, t.desc)
		written := o.texts("aliases")
		for _, alias := range t.Aliases {
			at := o.at("aliases", slices.Index(written, alias))
			l.claim(owner, alias, claimed{task: t, pos: at, near: `"` + alias + `"`, alias: true})
		}
	}
}

func (l *loader) nameClaim(t *Task) claimed {
	o := taskOptionSet(t.Service.File, t.desc)
	if name, ok := o.text("name"); ok && name == t.Name {
		return claimed{task: t, pos: o.at("name"), near: `"` + name + `"`}
	}
	return claimed{task: t, pos: t.Pos}
}

func (l *loader) claim(owner map[string]claimed, name string, c claimed) {
	other, taken := owner[name]
	if !taken {
		owner[name] = c
		return
	}
	if !c.task.Service.Generate {
		c, other = other, c
	}
	l.report(c.pos, complaint{near: c.near, other: other.pos, message: fmt.Sprintf(
		"task %s: %s %q is already %s of %s",
		c.task.desc.Desc.Name(), c.kind(), name, other.kind(), other.task.FullName)})
}

func (c claimed) kind() string {
	if c.alias {
		return "alias"
	}
	return "the name on the wire"
}
