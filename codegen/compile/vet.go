package compile

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/backstage-go/backstage/codegen"
	"github.com/backstage-go/backstage/schema"
)

// Vet adds to the Diagnostics what is allowed, but probably is not what was
// meant, in the eyes of the whole project: what [codegen.Program.Vet] finds, and
// imports that nothing needs. It adds nothing while the schemas do not compile.
func (p *Project) Vet() {
	if p.Tasks == nil {
		return
	}
	p.Diagnostics = append(p.Diagnostics, p.Tasks.Vet()...)
	p.Diagnostics = append(p.Diagnostics, p.unusedImports()...)
	p.localize()
}

// unusedImports returns the imports that a schema needs neither to compile nor
// for a then.
func (p *Project) unusedImports() codegen.Diagnostics {
	needed := map[[2]string]bool{}
	for _, t := range p.Tasks.Tasks() {
		for _, e := range t.Edges {
			needed[[2]string{t.Service.File.Desc.Path(), e.Target.Service.File.Desc.Path()}] = true
		}
	}
	var out codegen.Diagnostics
	for _, u := range p.unused {
		if needed[[2]string{u.pos.File, u.name}] {
			continue
		}
		d := codegen.Diagnostic{
			Severity: codegen.Warning,
			Pos:      u.pos,
			Near:     `"` + u.name + `"`,
			Message:  fmt.Sprintf("import %q is not used", u.name),
		}
		if u.name == codegen.OptionsPath {
			d.Hint = "no service here has (backstage.v1.defaults), no rpc (backstage.v1.task)"
		}
		out = append(out, d)
	}
	return out
}

// strangeCopies returns the copies of Backstage's schemas below the import roots
// that differ from those in this program. Schemas are compiled with what is built
// in; protoc, buf and editors read the copy, and may see other options.
func (p *Project) strangeCopies() (codegen.Diagnostics, error) {
	var out codegen.Diagnostics
	for _, root := range p.roots.list {
		err := fs.WalkDir(schema.Files, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			disk := filepath.Join(root.dir, filepath.FromSlash(name))
			have, err := os.ReadFile(disk)
			if err != nil {
				return nil // no copy is how it should be
			}
			want, err := fs.ReadFile(schema.Files, name)
			if err == nil && !bytes.Equal(normal(have), normal(want)) {
				out = append(out, strangeCopy(relative(p.cwd, disk), relative(p.cwd, root.dir)))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func strangeCopy(file, root string) codegen.Diagnostic {
	return codegen.Diagnostic{
		Severity: codegen.Warning,
		Pos:      codegen.Position{File: file, Line: 1, Column: 1},
		Message:  "this copy differs from the schema of this version of Backstage, which your schemas are compiled with; protoc, buf and editors read the copy, so replace it:",
		Paste:    []string{"go tool backstage proto -f " + filepath.ToSlash(root)},
	}
}

// normal drops carriage returns, which git may put into a working copy.
func normal(text []byte) []byte {
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
}
