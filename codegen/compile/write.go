package compile

import (
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/backstage-go/backstage/codegen"
)

// Changes are what Write did, as paths relative to the module's root, sorted.
type Changes struct {
	Written []string
	Deleted []string
	// Doubtful warns about generated files that may be left over, and that are
	// left alone because they may be somebody else's.
	Doubtful codegen.Diagnostics
}

// Write writes those files whose content changed, so that the others keep their
// time and stay built, and deletes generated files that no schema generates any
// more. A file that was not generated is never touched.
func (p *Project) Write(files []File) (Changes, error) {
	var c Changes
	left, err := p.Leftovers(files)
	if err != nil {
		return c, err
	}
	c.Doubtful = left.Doubtful
	changed, errs := make([]bool, len(files)), make([]error, len(files))
	parallel(len(files), func(i int) {
		changed[i], errs[i] = writeChanged(filepath.Join(p.Dir, filepath.FromSlash(files[i].Name)), files[i].Content)
	})
	for i, f := range files {
		if errs[i] != nil {
			return c, errs[i]
		}
		if changed[i] {
			c.Written = append(c.Written, f.Name)
		}
	}
	for _, name := range left.Stale {
		if err := os.Remove(filepath.Join(p.Dir, filepath.FromSlash(name))); err != nil {
			return c, err
		}
		c.Deleted = append(c.Deleted, name)
		p.removeEmpty(path.Dir(name))
	}
	slices.Sort(c.Written)
	return c, nil
}

// removeEmpty removes a folder of generated files, and those above, as far as
// they are empty now.
func (p *Project) removeEmpty(name string) {
	for ; name != "."; name = path.Dir(name) {
		if err := os.Remove(filepath.Join(p.Dir, filepath.FromSlash(name))); err != nil {
			return // something is in it, and it stays
		}
	}
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
