package main

import (
	"github.com/backstage-go/backstage/codegen"
	"github.com/backstage-go/backstage/codegen/compile"
	"github.com/backstage-go/backstage/templates"
)

// catalogueOf returns the catalogue of the tasks that a project generates.
func catalogueOf(project *compile.Project) templates.Catalogue {
	out := templates.Catalogue{Services: []templates.Service{}}
	for _, s := range project.Tasks.Services {
		if !s.Generate {
			continue
		}
		service := templates.Service{
			Name:       string(s.FullName),
			Place:      project.Locate(s.Pos).String(),
			Comment:    s.Comment,
			Owner:      s.Owner,
			Deprecated: s.Deprecated,
			Package:    string(s.GoImportPath),
			Tasks:      []templates.Task{},
		}
		for _, t := range s.Tasks {
			service.Tasks = append(service.Tasks, entryOf(project, t))
		}
		out.Services = append(out.Services, service)
	}
	return out
}

func entryOf(project *compile.Project, t *codegen.Task) templates.Task {
	entry := templates.Task{
		Name:       t.Name,
		RPC:        string(t.FullName),
		Short:      string(t.FullName.Name()),
		Aliases:    orEmpty(t.Aliases),
		Payload:    string(t.Payload.Desc.FullName()),
		Place:      project.Locate(t.Pos).String(),
		Comment:    t.Comment,
		Options:    map[string]templates.Option{},
		Next:       []string{},
		Owner:      t.Owner,
		Deprecated: t.Deprecated,
		Make:       t.MakeWords(),
		Run:        t.RunWords(),
	}
	for _, o := range t.Policy.Options() {
		if o.Name == "dedupe_for" && t.Dedupe == nil {
			continue // a service's window holds for its tasks that have a key
		}
		entry.Options[o.Name] = templates.Option{Value: o.Value, From: o.From.String()}
	}
	if t.Dedupe != nil {
		entry.Dedupe = t.Dedupe.Text
	}
	if t.Ordering != nil {
		entry.OrderingKey = t.Ordering.Text
	}
	for _, e := range t.Edges {
		entry.Next = append(entry.Next, string(e.Target.FullName))
	}
	return entry
}
