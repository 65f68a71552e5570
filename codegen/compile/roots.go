package compile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/backstage-go/backstage/codegen"
)

// A root is a folder that schemas are imported from, by their path below it.
type root struct {
	dir string
	// generate says whether Go is written for the schemas in it, or whether it
	// only serves imports.
	generate bool
	// why is what led to an inferred root.
	why string
}

// roots are all of them and how they were found.
type roots struct {
	list     []root
	excluded []string
	// included are folders of roots to which what is generated is narrowed; a
	// root with none of them is generated as a whole.
	included []string
	bufDeps  []string
	// whole says that these are all schemas of the module, so that what no
	// schema generates any more is stale. A configuration in a folder of the
	// module speaks for that folder only.
	whole bool
}

// add adds a folder, once. Folders of other modules serve imports only.
func (r *roots) add(dir string, m *module) {
	for _, have := range r.list {
		if have.dir == dir {
			return
		}
	}
	r.list = append(r.list, root{dir: dir, generate: m.owns(dir)})
}

// takes says whether a schema in a root is one to generate.
func (r *roots) takes(root root, file string) bool {
	narrowed := false
	for _, folder := range r.included {
		if within(root.dir, folder) {
			narrowed = true
			if within(folder, file) {
				return true
			}
		}
	}
	return !narrowed
}

// findRoots decides on the import roots: those given, else those of
// backstage.yaml, else those of buf.yaml, else what the packages of the schemas
// say.
func findRoots(ctx context.Context, o Options, dir string, m *module) (*roots, codegen.Diagnostics, error) {
	out, diagnostics, err := generatedRoots(ctx, o, dir, m)
	if err != nil {
		return nil, nil, err
	}
	if err := out.addImports(ctx, o.Imports, dir, m); err != nil {
		return nil, nil, err
	}
	if len(diagnostics) > 0 {
		return out, diagnostics, nil
	}
	return out, nil, out.overlap(dir)
}

func generatedRoots(ctx context.Context, o Options, dir string, m *module) (*roots, codegen.Diagnostics, error) {
	if len(o.Roots) > 0 {
		out := &roots{}
		return out, nil, out.addGiven(ctx, o.Roots, dir, m)
	}
	c, at, err := readConfig(dir, m)
	if err != nil {
		return nil, nil, err
	}
	out := &roots{whole: c == nil || at == m.Dir}
	if c != nil {
		if err := out.addImports(ctx, c.Imports, at, m); err != nil {
			return nil, nil, err
		}
	}
	if c != nil && len(c.Roots) > 0 {
		return out, nil, out.addGiven(ctx, c.Roots, at, m)
	}
	buf, err := bufRoots(dir, m)
	if err != nil {
		return nil, nil, err
	}
	if buf != nil {
		buf.list = append(buf.list, out.list...)
		return buf, nil, nil
	}
	diagnostics, err := out.infer(dir, m)
	return out, diagnostics, err
}

// addGiven adds folders and Go modules as somebody wrote them.
func (r *roots) addGiven(ctx context.Context, given []string, at string, m *module) error {
	for _, g := range given {
		dir, err := m.resolve(ctx, g, at)
		if err != nil {
			return err
		}
		r.add(dir, m)
	}
	return nil
}

// addImports adds roots for which nothing is generated.
func (r *roots) addImports(ctx context.Context, given []string, at string, m *module) error {
	for _, g := range given {
		dir, err := m.resolve(ctx, g, at)
		if err != nil {
			return err
		}
		r.list = append(r.list, root{dir: dir})
	}
	return nil
}

// resolve returns the folder that a root stands for: a folder as it is, or a Go
// module by its path.
func (m *module) resolve(ctx context.Context, given, at string) (string, error) {
	dir := given
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(at, filepath.FromSlash(given))
	}
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return dir, nil
	}
	first, _, _ := strings.Cut(given, "/")
	if filepath.IsAbs(given) || !strings.Contains(first, ".") || strings.HasPrefix(first, ".") {
		return "", fmt.Errorf("import root %s is no folder", given)
	}
	return m.dependency(ctx, given)
}

// overlap refuses a root inside another: a schema below both would have two
// names, and the program that links it would not start.
func (r *roots) overlap(dir string) error {
	for i, a := range r.list {
		for _, b := range r.list[i+1:] {
			outer, inner := a, b
			if within(b.dir, a.dir) {
				outer, inner = b, a
			}
			if !within(outer.dir, inner.dir) || outer.generate && !inner.generate {
				continue // a folder of imports is left out of what is generated
			}
			if outer.dir == inner.dir {
				return fmt.Errorf("import root %s is given twice", relative(dir, outer.dir))
			}
			return fmt.Errorf("import root %s lies in import root %s, so a schema below both would have two names%s; keep one of them",
				relative(dir, inner.dir), relative(dir, outer.dir), because(inner, outer))
		}
	}
	return nil
}

// because says what led to inferred roots, in brackets.
func because(list ...root) string {
	var whys []string
	for _, r := range list {
		if r.why != "" {
			whys = append(whys, r.why)
		}
	}
	if whys == nil {
		return ""
	}
	return " (" + strings.Join(whys, "; ") + ")"
}

// importDirs are the folders that only serve imports.
func (r *roots) importDirs() []string {
	var out []string
	for _, have := range r.list {
		if !have.generate {
			out = append(out, have.dir)
		}
	}
	return out
}

// relative returns a path as seen from the working directory, as it is printed.
func relative(dir, p string) string {
	rel, err := filepath.Rel(dir, p)
	if err != nil || strings.Count(rel, "..") > 4 {
		return p
	}
	return rel
}
