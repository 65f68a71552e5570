package main

import (
	"fmt"
	"strings"

	"github.com/backstage-go/backstage/codegen"
	"github.com/backstage-go/backstage/codegen/compile"
)

// nothing is a schema that gives no task package, and why.
type nothing struct {
	Schema string `json:"schema"`
	Why    string `json:"why"`
}

// withoutTasks returns the schemas that give no task package.
func withoutTasks(project *compile.Project) []nothing {
	if project.Tasks == nil {
		return nil
	}
	has, empty := map[string]bool{}, map[string]string{}
	for _, s := range project.Tasks.Services {
		if path := s.File.Desc.Path(); len(s.Tasks) > 0 {
			has[path] = true
		} else {
			empty[path] = string(s.FullName.Name())
		}
	}
	services := servicesOf(project)
	var out []nothing
	for _, name := range project.Schemas {
		if !has[name] {
			out = append(out, nothing{
				Schema: project.Locate(codegen.Position{File: name}).File,
				Why:    why(services[name], empty[name]),
			})
		}
	}
	return out
}

func why(services []string, empty string) string {
	switch {
	case len(services) == 0:
		return "it declares no service"
	case empty != "":
		return fmt.Sprintf("task service %s has no rpc", empty)
	}
	return fmt.Sprintf("%s: no (backstage.v1.defaults) on a service, and no (backstage.v1.task) on an rpc",
		strings.Join(services, ", "))
}

// servicesOf returns the names of all services by schema.
func servicesOf(project *compile.Project) map[string][]string {
	out := map[string][]string{}
	for _, f := range project.Request().GetProtoFile() {
		for _, s := range f.Service {
			out[f.GetName()] = append(out[f.GetName()], s.GetName())
		}
	}
	return out
}
