package compile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/backstage-go/backstage/codegen"
)

// behindLinks warns about schemas that lie behind a symbolic link below an import
// root. Links to folders are not followed, because two ways to one schema would
// give it two names; but buf follows them, and so do imports.
func (p *Project) behindLinks() (codegen.Diagnostics, error) {
	var out codegen.Diagnostics
	for _, root := range p.roots.list {
		if !root.generate {
			continue
		}
		links, err := p.schemaLinks(root.dir)
		if err != nil {
			return nil, err
		}
		for _, link := range links {
			if !p.roots.takes(root, link) {
				continue
			}
			out = append(out, codegen.Diagnostic{
				Severity: codegen.Warning,
				Pos:      codegen.Position{File: relative(p.cwd, link)},
				Message:  "no Go is written for the schemas behind this symbolic link, because links below an import root are not followed; put the folder in its place, or name it as an import root of its own",
			})
		}
	}
	return out, nil
}

// withoutSchemas is the error of a module in which no schema is found.
func (p *Project) withoutSchemas() error {
	text := fmt.Sprintf("no schema (*.proto) in module %s%s; ", p.module.Path, searchedIn(p.roots, p.cwd))
	if links, err := p.schemaLinks(p.Dir); err == nil && len(links) > 0 {
		link := relative(p.cwd, links[0])
		return fmt.Errorf("%s%s is a symbolic link to a folder with schemas, which is followed when it is named: -root %s", text, link, link)
	}
	return fmt.Errorf("%sbackstage init writes a first one", text)
}

// schemaLinks returns the links below a folder that lead to folders with schemas
// that no import root has.
func (p *Project) schemaLinks(dir string) ([]string, error) {
	var out []string
	err := walk(dir, slices.Concat(p.roots.excluded, p.roots.importDirs()), func(file string, entry fs.DirEntry) {
		if entry.Type()&fs.ModeSymlink != 0 && !p.roots.reach(file) && hasSchemas(file) {
			out = append(out, file)
		}
	})
	return out, err
}

// reach says whether what a link leads to is below a root without it.
func (r *roots) reach(link string) bool {
	target, err := filepath.EvalSymlinks(link)
	return err != nil || slices.ContainsFunc(r.list, func(root root) bool {
		dir, err := filepath.EvalSymlinks(root.dir)
		return err == nil && within(dir, target)
	})
}

// hasSchemas says whether what a link leads to is a folder with a schema in it.
func hasSchemas(link string) bool {
	if info, err := os.Stat(link); err != nil || !info.IsDir() {
		return false
	}
	found := false
	// A folder that cannot be read has no schemas for others either.
	_ = filepath.WalkDir(link+string(filepath.Separator)+".", func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(entry.Name(), ".proto") {
			found = true
			return filepath.SkipAll
		}
		return err
	})
	return found
}
