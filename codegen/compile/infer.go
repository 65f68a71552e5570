package compile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/backstage-go/backstage/codegen"
)

// infer finds the roots by the rule that a schema of package shop.orders.v1 lies
// in a folder shop/orders/v1 below its root.
func (r *roots) infer(dir string, m *module) (codegen.Diagnostics, error) {
	files, err := findSchemas(m.Dir, r.importDirs())
	if err != nil {
		return nil, err
	}
	type odd struct{ file, pkg string }
	var misfits []odd
	var out codegen.Diagnostics
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		pkg := packageOf(string(text))
		rootDir, ok := minusPackage(filepath.Dir(file), pkg)
		if pkg == "" && !utf8.Valid(text) { // it may have one, in another encoding
			out = append(out, (&source{name: relative(dir, file), text: string(text)}).characters()...)
			continue
		}
		if !ok || pkg == "" || !within(m.Dir, rootDir) {
			misfits = append(misfits, odd{file, pkg})
			continue
		}
		r.addInferred(rootDir, fmt.Sprintf("%s has package %s", relative(dir, file), pkg))
	}
	for _, x := range misfits {
		if !r.covers(x.file) {
			out = append(out, misfit(relative(dir, x.file), x.pkg))
		}
	}
	return out, nil
}

func (r *roots) addInferred(dir, why string) {
	for _, have := range r.list {
		if have.dir == dir && have.generate {
			return
		}
	}
	r.list = append(r.list, root{dir: dir, generate: true, why: why})
}

func (r *roots) covers(file string) bool {
	for _, have := range r.list {
		if within(have.dir, file) {
			return true
		}
	}
	return false
}

func misfit(file, pkg string) codegen.Diagnostic {
	d := codegen.Diagnostic{
		Pos:  codegen.Position{File: file, Line: 1, Column: 1},
		Hint: "or name the import roots in " + ConfigFile,
		Paste: []string{
			"roots: [proto]",
		},
	}
	if pkg == "" {
		d.Message = "the schema has no package, so its import root cannot be found"
	} else {
		d.Message = fmt.Sprintf("the import root cannot be found: a schema of package %s belongs in a folder %s", pkg, strings.ReplaceAll(pkg, ".", "/"))
	}
	return d
}

// minusPackage takes the folders of a package off the end of a path.
func minusPackage(dir, pkg string) (string, bool) {
	names := strings.Split(pkg, ".")
	for i := len(names) - 1; i >= 0; i-- {
		if filepath.Base(dir) != names[i] {
			return "", false
		}
		dir = filepath.Dir(dir)
	}
	return dir, true
}

// packageOf returns the package that a schema declares, "" if none. It runs
// before the schema can be parsed, because its name is not known yet.
func packageOf(text string) string {
	words := words(strings.TrimPrefix(text, "\ufeff"))
	for i, w := range words {
		if w == "package" && (i == 0 || words[i-1] == ";") && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}

// words splits a schema into names, strings and single other characters,
// without its comments.
func words(text string) []string {
	var out []string
	for text != "" {
		n := 1
		switch c := text[0]; {
		case strings.HasPrefix(text, "//"):
			n = until(text, "\n")
		case strings.HasPrefix(text, "/*"):
			n = until(text, "*/")
		case c == '"' || c == '\'':
			n = quoted(text)
			out = append(out, text[:n])
		case isWord(c):
			for n < len(text) && isWord(text[n]) {
				n++
			}
			out = append(out, text[:n])
		case c > ' ':
			out = append(out, text[:1])
		}
		text = text[n:]
	}
	return out
}

func isWord(c byte) bool {
	return c == '_' || c == '.' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func until(text, end string) int {
	if i := strings.Index(text[2:], end); i >= 0 {
		return 2 + i + len(end)
	}
	return len(text)
}

func quoted(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return len(text)
}
