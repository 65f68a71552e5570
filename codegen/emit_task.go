package codegen

import (
	"fmt"

	"github.com/dave/jennifer/jen"
)

// task writes everything about one task.
func (e *emitter) task(t *Task) {
	e.enqueue(t)
	e.job(t)
	e.register(t)
	if len(t.Edges) > 0 {
		e.next(t)
	}
	e.spec(t)
}

func (e *emitter) enqueue(t *Task) {
	e.declare(paragraphs(t.doc(), t.MakeWords(), t.deprecation()),
		jen.Func().Params(jen.Id("c").Op("*").Id("Client")).Id(t.GoName).
			Params(jen.Id("ctx").Qual("context", "Context"), jen.Id("in").Add(e.message(t.Payload)), enqueueOptions()).
			Params(backstage("Receipt"), jen.Error()).
			Block(jen.Return(backstage("Enqueue").Call(
				jen.Id("ctx"),
				jen.Id("c").Dot("enqueuer"),
				jen.Id(t.GoName+"Job").Call(jen.Id("in"), jen.Id("opts").Op("...")),
			))))
}

func (e *emitter) job(t *Task) {
	doc := fmt.Sprintf("%sJob returns a job of %s as a value, for batches that mix tasks.", t.GoName, t.GoName)
	e.declare(paragraphs(doc, t.deprecation()),
		jen.Func().Id(t.GoName+"Job").
			Params(jen.Id("in").Add(e.message(t.Payload)), enqueueOptions()).
			Add(backstage("Job")).
			Block(jen.Return(backstage("NewJob").Call(e.callSpec(t), jen.Id("in"), jen.Id("opts").Op("...")))))
}

func (e *emitter) register(t *Task) {
	register := "Register"
	if len(t.Edges) > 0 {
		register = "RegisterChain"
	}
	e.declare(fmt.Sprintf("Register%s lets worker run %s by handle.", t.GoName, t.GoName),
		jen.Func().Id("Register"+t.GoName).
			Params(worker(), jen.Id("handle").Func().Params(e.handleParams(t, false)...).Error(), registerOptions()).
			Block(backstage(register).Call(jen.Id("worker"), e.registration(t), jen.Id("handle"), jen.Id("opts").Op("..."))))
}

func (e *emitter) registration(t *Task) jen.Code {
	list := []jen.Code{field("Name", jen.Id(t.GoName+"Name"))}
	if len(t.Aliases) > 0 {
		list = append(list, field("Aliases", jen.Index().String().Values(lits(t.Aliases)...)))
	}
	if t.Policy.Queue.From != BuiltIn {
		list = append(list, field("Queue", lit(t.Policy.Queue.Value)))
	}
	if policy := policyFields(t.Policy); len(policy) > 0 {
		list = append(list, field("Policy", backstage("Policy").Values(policy...)))
	}
	if len(t.Edges) > 0 {
		var needs []jen.Code
		for _, edge := range t.Edges {
			needs = append(needs, e.needs(edge.Target))
		}
		list = append(list, field("Next", jen.Index().Add(backstage("Needs")).Values(needs...)))
	}
	if len(list) == 1 {
		return backstage("Registration").Values(list...)
	}
	return backstage("Registration").Add(fields(list...))
}

// policyFields are the settings of the schema. What is built in is left to the
// runtime, which knows it, too.
func policyFields(p Policy) []jen.Code {
	var list []jen.Code
	if p.Timeout.From != BuiltIn {
		list = append(list, field("Timeout", duration(p.Timeout.Value)))
	}
	if p.MaxAttempts.From != BuiltIn {
		list = append(list, field("MaxAttempts", lit(int(p.MaxAttempts.Value))))
	}
	if p.Backoff.From != BuiltIn {
		list = append(list, field("Backoff", backstage("Backoff").Values(
			field("Base", duration(p.Backoff.Value.Min)),
			field("Cap", duration(p.Backoff.Value.Max)),
		)))
	}
	if p.MaxAge.From != BuiltIn {
		list = append(list, field("MaxAge", duration(p.MaxAge.Value)))
	}
	return list
}

func (e *emitter) next(t *Task) {
	name := t.GoName + "Next"
	e.declare(fmt.Sprintf("%s records what follows when %s succeeds. An error of the\nhandler discards it.", name, t.GoName),
		jen.Type().Id(name).Add(backstage("Next")))
	for _, edge := range t.Edges {
		e.declare(fmt.Sprintf("%s lets a job of %s follow.", edge.GoName, e.targetName(edge)),
			jen.Func().Params(jen.Id("n").Op("*").Id(name)).Id(edge.GoName).
				Params(jen.Id("in").Add(e.message(edge.Target.Payload)), jen.Id("opts").Op("...").Add(backstage("EdgeOption"))).
				Block(backstage("Add").Call(
					jen.Parens(jen.Op("*").Add(backstage("Next"))).Call(jen.Id("n")),
					e.callSpec(edge.Target),
					lit(t.GoName+"."+edge.GoName),
					jen.Id("in"),
					jen.Id("opts").Op("..."),
				)))
	}
}

func (e *emitter) targetName(edge *Edge) string {
	if edge.Target.Service == e.service {
		return edge.Target.GoName
	}
	return string(edge.Target.FullName)
}
