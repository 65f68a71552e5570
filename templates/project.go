package templates

import (
	"fmt"
	"path"
	"strings"
)

// Project is what a first project is written from.
type Project struct {
	// Name is the word that everything is named after: "shop".
	Name string
	// Package is the import path of the project's folder: "example.com/shop".
	Package string
}

// File is a file of a project, named relative to its folder with slashes.
type File struct {
	Name    string
	Content string
	// Kept says that a file of this name that is there already may stay: the
	// project does not need this one.
	Kept bool
}

// projectFiles are the files of a project and their templates.
func (p Project) projectFiles() []projectFile {
	return []projectFile{
		{path.Join("proto", p.Name, "v1", p.Name+"_tasks.proto"), "tasks.proto.tmpl", false},
		{"gen.go", "gen.go.tmpl", false},
		{"main.go", "main.go.tmpl", false},
		{"handler.go", "handler.go.tmpl", false},
		{"handler_test.go", "handler_test.go.tmpl", false},
		{"buf.yaml", "buf.yaml.tmpl", true},
		{"buf.gen.yaml", "buf.gen.yaml.tmpl", true},
		{".gitignore", "gitignore.tmpl", true},
	}
}

type projectFile struct {
	name, template string
	kept           bool
}

// Files returns the project's files.
func (p Project) Files() ([]File, error) {
	var out []File
	for _, f := range p.projectFiles() {
		var b strings.Builder
		if err := render(&b, "project/"+f.template, p); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		out = append(out, File{Name: f.name, Content: b.String(), Kept: f.kept})
	}
	return out, nil
}

// Service is the name of the task service: "ShopTasks".
func (p Project) Service() string {
	return strings.ToUpper(p.Name[:1]) + p.Name[1:] + "Tasks"
}

// Tasks is the name of the service's generated package: "shoptasks".
func (p Project) Tasks() string { return strings.ToLower(p.Service()) }

// Messages is the name of the messages' generated package: "shopv1".
func (p Project) Messages() string { return p.Name + "v1" }
