package compile

import (
	"os"
	"path/filepath"
	"slices"
)

// Changes are what Write did, as paths relative to the module's root, sorted.
type Changes struct {
	Written []string
	Deleted []string
}

// Write writes those files whose content changed, so that the others keep their
// time and stay built, and deletes generated files that no schema generates any
// more. A file that was not generated is never touched.
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
