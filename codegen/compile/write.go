package compile

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/backstage-go/backstage/codegen"
)

// Changes are what Write did, as paths relative to the module's root, sorted.
type Changes struct {
	Written []string
	Deleted []string
}

// Write writes those files whose content changed, so that the others keep their
// time and stay built, and deletes generated task packages that no schema
// generates any more. A file that was not generated is never touched.
func (p *Project) Write(files []File) (Changes, error) {
	var c Changes
	stale, err := p.Stale(files)
	if err != nil {
		return c, err
	}
	for _, f := range files {
		changed, err := writeChanged(filepath.Join(p.Dir, filepath.FromSlash(f.Name)), f.Content)
		if err != nil {
			return c, err
		}
		if changed {
			c.Written = append(c.Written, f.Name)
		}
	}
	for _, name := range stale {
		disk := filepath.Join(p.Dir, filepath.FromSlash(name))
		if err := os.Remove(disk); err != nil {
			return c, err
		}
		// The folder goes too if it is empty now; if not, it stays.
		_ = os.Remove(filepath.Dir(disk))
		c.Deleted = append(c.Deleted, name)
	}
	slices.Sort(c.Written)
	return c, nil
}

func writeChanged(name, content string) (bool, error) {
	have, err := os.ReadFile(name)
	if err == nil && string(have) == content {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return false, err
	}
	return true, os.WriteFile(name, []byte(content), 0o644)
}

// Stale returns the generated task packages on disk that are not among files,
// for a check that the tree is up to date as well as for Write. When the project
// is all schemas of the module it looks everywhere in it, else only below the
// packages of its own messages.
func (p *Project) Stale(files []File) ([]string, error) {
	fresh := map[string]bool{}
	folders := map[string]bool{}
	for _, f := range files {
		fresh[f.Name] = true
		if strings.HasSuffix(f.Name, ".pb.go") {
			folders[path.Dir(f.Name)] = true
		}
	}
	var out []string
	err := walk(p.Dir, nil, func(disk string) {
		name := filepath.ToSlash(relative(p.Dir, disk))
		mine := p.roots.whole || folders[path.Dir(path.Dir(name))]
		if mine && strings.HasSuffix(name, ".backstage.go") && !fresh[name] && isGenerated(disk) {
			out = append(out, name)
		}
	})
	slices.Sort(out)
	return out, err
}

func isGenerated(disk string) bool {
	text, err := os.ReadFile(disk)
	return err == nil && bytes.HasPrefix(text, []byte(codegen.Header+"\n"))
}
