package templates

import (
	"embed"
	"fmt"
	"io"
	"strings"
	"text/template"
)

// files has the templates; those of a project under the paths of its files.
//
//go:embed all:files
var files embed.FS

// render fills a template. Templates have nothing but their data and these
// functions.
func render(w io.Writer, name string, data any) error {
	t, err := template.New("").Funcs(template.FuncMap{
		"join":  strings.Join,
		"line":  oneLine,
		"cell":  cell,
		"lines": func(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") },
	}).ParseFS(files, "files/"+name)
	if err != nil {
		return fmt.Errorf("template %s: %w", name, err)
	}
	return t.ExecuteTemplate(w, name[strings.LastIndexByte(name, '/')+1:], data)
}

// oneLine makes one line of a text.
func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}

// cell makes text fit for a cell of a Markdown table.
func cell(s string) string {
	return strings.ReplaceAll(oneLine(s), "|", `\|`)
}
