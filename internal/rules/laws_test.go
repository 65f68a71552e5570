package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// root is the repository, seen from this package.
const root = "../.."

// law is a rule about how code is written.
type law struct {
	name    string
	because string
	// check returns the violations in files, each with its place.
	check func(files []*source) []string
	// examples break the law, or just do not.
	examples []example
}

// example is a file and what the law says of it: parts of violations, in order.
type example struct {
	path string
	text string
	want []string
}

// source is one Go file of the repository, in any module.
type source struct {
	path      string // from the root, with slashes
	set       *token.FileSet
	file      *ast.File
	test      bool
	generated bool
}

func (s *source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.line(n.Pos()))
}

func (s *source) line(p token.Pos) int { return s.set.Position(p).Line }

// written says that people wrote the file, and not for tests.
func (s *source) written() bool { return !s.test && !s.generated }

func laws() []law {
	return []law{documented(), introduced(), stateless(), shortEnough(), plainlyNamed(), awake()}
}

func TestLaws(t *testing.T) {
	t.Parallel()
	for _, law := range laws() {
		t.Run(law.name, func(t *testing.T) {
			t.Parallel()
			for _, violation := range law.check(repository(t)) {
				t.Errorf("%s (%s)", violation, law.because)
			}
		})
	}
}

func TestBrokenLawsAreSeen(t *testing.T) {
	t.Parallel()
	for _, law := range laws() {
		t.Run(law.name, func(t *testing.T) {
			t.Parallel()
			for i, e := range law.examples {
				got := law.check([]*source{parse(t, e.path, e.text)})
				if len(got) != len(e.want) {
					t.Errorf("example %d (%.60q) gives %q, want %q", i, e.text, got, e.want)
					continue
				}
				for j, want := range e.want {
					if !strings.Contains(got[j], want) {
						t.Errorf("example %d (%.60q) gives %q, want %q in it", i, e.text, got[j], want)
					}
				}
			}
		})
	}
}

func parse(t *testing.T, name string, text any) *source {
	t.Helper()
	s, err := read(name, name, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(name, file string, text any) (*source, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{
		path: name, set: set, file: f,
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(f),
	}, nil
}

var readAll = sync.OnceValues(func() ([]*source, error) {
	var all []*source
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if file != root && (name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		below, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		s, err := read(filepath.ToSlash(below), file, nil)
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	return all, err
})

// repository returns every Go file of the repository, whatever system it is for.
func repository(t *testing.T) []*source {
	t.Helper()
	all, err := readAll()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(all, func(s *source) bool { return s.path == "internal/rules/doc.go" }) {
		t.Fatal("the repository was not found: this file is not in it")
	}
	return all
}

// folders groups files by their folder, in order.
func folders(files []*source) map[string][]*source {
	out := map[string][]*source{}
	for _, s := range files {
		out[path.Dir(s.path)] = append(out[path.Dir(s.path)], s)
	}
	return out
}
