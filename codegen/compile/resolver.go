package compile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/backstage-go/backstage/codegen"
	"github.com/backstage-go/backstage/schema"
)

// A resolver finds what schemas import: among Backstage's own schemas, then in the
// roots, then among protobuf's. Backstage's come first, because the generator
// reads options as this version has them: a copy of another version, or a damaged
// one, would only add errors that are not the user's.
type resolver struct {
	roots    *roots
	sources  sources
	own      protocompile.Resolver
	standard protocompile.Resolver
	// dir is what roots are printed relative to.
	dir string
}

func newResolver(r *roots, s sources, dir string) *resolver {
	own := protocompile.ResolverFunc(func(name string) (protocompile.SearchResult, error) {
		f, err := schema.Files.Open(name)
		return protocompile.SearchResult{Source: f}, err
	})
	none := protocompile.ResolverFunc(func(string) (protocompile.SearchResult, error) {
		return protocompile.SearchResult{}, protoregistry.NotFound
	})
	return &resolver{roots: r, sources: s, own: own, standard: protocompile.WithStandardImports(none), dir: dir}
}

// FindFileByPath returns a schema by the name that others import it by.
func (r *resolver) FindFileByPath(name string) (protocompile.SearchResult, error) {
	if s := r.sources[name]; s != nil {
		return protocompile.SearchResult{AST: s.tree}, nil
	}
	if found, err := r.own.FindFileByPath(name); err == nil {
		return found, nil
	}
	if disk := r.find(name); disk != "" {
		f, err := os.Open(disk)
		return protocompile.SearchResult{Source: f}, err
	}
	found, err := r.standard.FindFileByPath(name)
	if err != nil {
		return found, fmt.Errorf("%w: %s", protoregistry.NotFound, r.missing(name).Message)
	}
	return found, nil
}

// find returns the file of a name in the roots that serve imports.
func (r *resolver) find(name string) string {
	for _, root := range r.roots.list {
		disk := filepath.Join(root.dir, filepath.FromSlash(name))
		if info, err := os.Stat(disk); err == nil && info.Mode().IsRegular() && within(root.dir, disk) {
			return disk
		}
	}
	return ""
}

// imports checks that all imports of a schema can be found.
func (r *resolver) imports(s *source) codegen.Diagnostics {
	var out codegen.Diagnostics
	for _, node := range r.sources.importsOf(s.name) {
		name := node.Name.AsString()
		if r.knows(name) {
			continue
		}
		d := r.missing(name)
		d.Pos = span(s.tree.NodeInfo(node))
		d.Near = `"` + name + `"`
		out = append(out, d)
	}
	return out
}

func (r *resolver) knows(name string) bool {
	if r.sources[name] != nil || r.find(name) != "" {
		return true
	}
	for _, next := range []protocompile.Resolver{r.own, r.standard} {
		if _, err := next.FindFileByPath(name); err == nil {
			return true
		}
	}
	return false
}

// missing explains an import that was not found.
func (r *resolver) missing(name string) codegen.Diagnostic {
	var searched []string
	for _, root := range r.roots.list {
		searched = append(searched, relative(r.dir, root.dir))
	}
	d := codegen.Diagnostic{
		Message: fmt.Sprintf("import %q is not found; import roots: %s", name, strings.Join(searched, ", ")),
		Hint:    r.hint(name),
	}
	if d.Hint == "" && len(r.roots.bufDeps) > 0 {
		d.Hint = "buf.yaml has deps, which only buf can fetch; export them and name the folder in " + ConfigFile
		d.Paste = []string{"buf export " + r.roots.bufDeps[0] + " -o third_party", "imports: [third_party]"}
	}
	return d
}

// hint guesses what was meant: the options by a wrong path, a schema by its
// path from somewhere else than its root, or a misspelt name.
func (r *resolver) hint(name string) string {
	if strings.HasPrefix(name, "backstage") || strings.HasSuffix(name, "backstage/v1/options.proto") {
		return fmt.Sprintf("did you mean %q?", codegen.OptionsPath)
	}
	for _, have := range r.sources.names() {
		if strings.HasSuffix(name, "/"+have) || strings.HasSuffix(have, "/"+name) {
			return fmt.Sprintf("did you mean %q? An import is written relative to the import root", have)
		}
	}
	if near := codegen.Nearest(name, r.sources.names()); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}
