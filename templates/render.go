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
		"plain": plain,
		"code":  code,
		"label": label,
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

// plain makes one line of a text that Markdown shows as it is, in a cell of a table
// too.
func plain(s string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", `*`, `\*`, `[`, `\[`, `]`, `\]`, `<`, `\<`, `|`, `\|`).Replace(oneLine(s))
}

// code makes code of a text in Markdown. What has a backtick stands between two.
func code(s string) string {
	if strings.Contains(s, "`") {
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}

// label makes a text stand for itself in a label of mermaid.
func label(s string) string {
	return strings.NewReplacer(`#`, "#35;", `"`, "#quot;", "`", "#96;", `<`, "#lt;", `>`, "#gt;").Replace(s)
}
