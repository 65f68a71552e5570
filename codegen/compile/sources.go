package compile

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile/ast"
	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/reporter"

	"github.com/backstage-go/backstage/codegen"
	"github.com/backstage-go/backstage/schema"
)

// A source is one schema to generate.
type source struct {
	// name is its path below its root, by which others import it.
	name string
	disk string
	text string
	// tree is nil while the schema is not parsed, and when it is compiled.
	tree *ast.FileNode
}

// sources are the schemas to generate, by name.
type sources map[string]*source

func (s sources) names() []string {
	out := make([]string, 0, len(s))
	for name := range s {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// readSources reads and parses all schemas below the roots.
func readSources(r *roots, m *module) (sources, codegen.Diagnostics, error) {
	out := sources{}
	var diagnostics codegen.Diagnostics
	for _, root := range r.list {
		if !root.generate {
			continue
		}
		files, err := findSchemas(root.dir, slices.Concat(r.excluded, r.importDirs()))
		if err != nil {
			return nil, nil, err
		}
		for _, file := range files {
			if !r.takes(root, file) {
				continue
			}
			s, err := readSource(root.dir, file)
			if err != nil {
				return nil, nil, err
			}
			if isOurs(s.name, m) {
				continue
			}
			if other := out[s.name]; other != nil {
				diagnostics = append(diagnostics, codegen.Diagnostic{
					Pos:     codegen.Position{File: s.name, Line: 1, Column: 1},
					Message: "two import roots have a schema of this name: " + other.disk + " and " + s.disk,
				})
				continue
			}
			out[s.name] = s
		}
	}
	for _, name := range out.names() {
		diagnostics = append(diagnostics, out[name].parse()...)
	}
	return out, diagnostics, nil
}

// dropTrees gives back the memory of all syntax trees when the schemas are compiled:
// they are a fifth of what a run holds, and would be looked through at each
// collection of garbage that follows.
func (s sources) dropTrees() {
	for _, one := range s {
		one.tree = nil
	}
}

func readSource(rootDir, file string) (*source, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(rootDir, file)
	if err != nil {
		return nil, err
	}
	return &source{name: filepath.ToSlash(rel), disk: file, text: string(text)}, nil
}

// isOurs says whether a schema is a copy of Backstage's own in somebody's
// module, kept where editors and buf find it. Its Go is in Backstage.
func isOurs(name string, m *module) bool {
	if _, err := schema.Files.Open(name); err != nil {
		return false
	}
	return m.Path != "github.com/backstage-go/backstage"
}

// parse builds the syntax tree and checks what can be checked on it alone.
func (s *source) parse() codegen.Diagnostics {
	if found := s.characters(); found != nil {
		return found
	}
	if found := s.parseTree(); found != nil {
		return found
	}
	return slices.Concat(s.rootless(), s.edition(), s.directives())
}

// parseTree builds the syntax tree alone.
func (s *source) parseTree() codegen.Diagnostics {
	c := &collector{}
	tree, err := parser.Parse(s.name, bytes.NewReader([]byte(s.text)), reporter.NewHandler(c.reporter()))
	if len(c.found) > 0 || err != nil {
		c.add(err)
		return advise(c.found, sources{s.name: s})
	}
	s.tree = tree
	return nil
}

// rootless refuses a schema right below its root: two modules with a
// tasks.proto register one name, and a program that links both does not start.
func (s *source) rootless() codegen.Diagnostics {
	if strings.Contains(s.name, "/") {
		return nil
	}
	return codegen.Diagnostics{{
		Pos: codegen.Position{File: s.name, Line: 1, Column: 1},
		Message: "the schema lies right below its import root, so that its name, " + s.name +
			", may be taken by another module in the same program; move it to a folder named after its package, such as shop/orders/v1",
	}}
}

// edition explains what this compiler cannot read.
func (s *source) edition() codegen.Diagnostics {
	if s.tree.Edition == nil {
		return nil
	}
	switch value := s.tree.Edition.Edition.AsString(); value {
	case "2023":
		return nil
	case "2024":
		return codegen.Diagnostics{{
			Pos:     span(s.tree.NodeInfo(s.tree.Edition.Edition)),
			Message: "edition 2024 needs buf or protoc to be compiled",
			Hint:    "compile with one of them and hand over the result:",
			Paste: []string{
				"buf build -o image.binpb && backstage generate --descriptor-set image.binpb",
			},
		}}
	default:
		return codegen.Diagnostics{{
			Pos:     span(s.tree.NodeInfo(s.tree.Edition.Edition)),
			Message: "edition \"" + value + "\" is not known; this generator reads 2023, and 2024 as a descriptor set",
		}}
	}
}

// span returns the place of something in a syntax tree.
func span(info ast.SourceSpan) codegen.Position {
	start, end := info.Start(), info.End()
	return codegen.Position{
		File:      start.Filename,
		Line:      start.Line,
		Column:    start.Col,
		EndLine:   end.Line,
		EndColumn: end.Col,
	}
}
