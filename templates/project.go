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
	// Kept says that a file of this name that is there already may stay. Needs
	// is what the project needs of it then, "" for nothing.
	Kept  bool
	Needs string
}

// projectFiles are the files of a project and the templates of their content.
func (p Project) projectFiles() []File {
	return []File{
		{Name: path.Join("proto", p.Name, "v1", p.Name+"_tasks.proto"), Content: "tasks.proto.tmpl"},
		{Name: "gen.go", Content: "gen.go.tmpl"},
		{Name: "main.go", Content: "main.go.tmpl"},
		{Name: "handler.go", Content: "handler.go.tmpl"},
		{Name: "handler_test.go", Content: "handler_test.go.tmpl"},
		{Name: "buf.yaml", Content: "buf.yaml.tmpl", Kept: true, Needs: "a module with path: proto"},
		{Name: "buf.gen.yaml", Content: "buf.gen.yaml.tmpl", Kept: true},
		{Name: ".gitignore", Content: "gitignore.tmpl", Kept: true, Needs: "a line /" + p.Name + ".db*"},
	}
}

// Files returns the project's files.
func (p Project) Files() ([]File, error) {
	files := p.projectFiles()
	for i, f := range files {
		var b strings.Builder
		if err := render(&b, "project/"+f.Content, p); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		files[i].Content = b.String()
	}
	return files, nil
}

// Service is the name of the task service: "ShopTasks".
func (p Project) Service() string {
	return strings.ToUpper(p.Name[:1]) + p.Name[1:] + "Tasks"
}

// Tasks is the name of the service's generated package: "shoptasks".
func (p Project) Tasks() string { return strings.ToLower(p.Service()) }

// Messages is the name of the messages' generated package: "shopv1".
func (p Project) Messages() string { return p.Name + "v1" }
