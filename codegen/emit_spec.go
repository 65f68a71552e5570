package codegen

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"
)

// nameSpecs names the function that returns a task as the runtime knows it
// where a job is made: chargeCardTask. A task of another service that may
// follow has one here, too, so that generated packages never import each other.
func (e *emitter) nameSpecs() {
	e.specs = map[*Task]string{}
	var taken []string
	add := func(t *Task, name string) {
		unique := name + "Task"
		for n := 2; slices.Contains(taken, unique); n++ {
			unique = name + "Task" + strconv.Itoa(n)
		}
		taken = append(taken, unique)
		e.specs[t] = unique
	}
	for _, t := range e.service.Tasks {
		add(t, lowerFirst(t.GoName))
	}
	for _, t := range e.service.Tasks {
		for _, edge := range t.Edges {
			if _, named := e.specs[edge.Target]; !named {
				add(edge.Target, lowerFirst(edge.Target.Service.GoName)+edge.Target.GoName)
				e.foreign = append(e.foreign, edge.Target)
			}
		}
	}
}

func lowerFirst(s string) string {
	return strings.ToLower(s[:1]) + s[1:]
}

func (e *emitter) callSpec(t *Task) *jen.Statement { return jen.Id(e.specs[t]).Call() }

func (e *emitter) needs(t *Task) jen.Code { return e.callSpec(t).Dot("Needs").Call() }

// spec writes the function that nameSpecs named.
func (e *emitter) spec(t *Task) {
	typ := func() *jen.Statement { return backstage("Task").Types(e.message(t.Payload)) }
	name := jen.Code(jen.Id(t.GoName + "Name"))
	if t.Service != e.service {
		name = lit(t.Name)
	}
	list := []jen.Code{field("Name", name)}
	if t.Policy.Queue.From != BuiltIn {
		list = append(list, field("Queue", lit(t.Policy.Queue.Value)))
	}
	more := e.makeFields(t)
	literal := typ().Values(list...)
	if len(more) > 0 {
		literal = typ().Add(fields(slices.Concat(list, more)...))
	}
	e.declare("", jen.Func().Id(e.specs[t]).Params().Add(typ()).Block(jen.Return(literal)))
}

// makeFields are the rarer settings that are read where a job is made.
func (e *emitter) makeFields(t *Task) []jen.Code {
	var list []jen.Code
	p := t.Policy
	if p.Delay.Value != 0 {
		list = append(list, field("Delay", duration(p.Delay.Value)))
	}
	if p.Expires.Value != 0 {
		list = append(list, field("Expires", duration(p.Expires.Value)))
	}
	if t.Dedupe != nil {
		list = append(list, field("Dedupe", e.key(t, t.Dedupe)))
		if p.DedupeFor.Value.UntilDone {
			list = append(list, field("DedupeUntilDone", jen.True()))
		} else {
			list = append(list, field("DedupeFor", duration(p.DedupeFor.Value.For)))
		}
	}
	if t.Ordering != nil {
		list = append(list, field("OrderingKey", e.key(t, t.Ordering)))
	}
	return list
}
