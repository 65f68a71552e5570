package compile

import (
	"cmp"
	"errors"
	"io/fs"
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
// more. It writes all of them or, when one cannot be written, none. A file that was
// not generated is never touched.
func (p *Project) Write(files []File) (Changes, error) {
	var c Changes
	left, err := p.Leftovers(files)
	if err != nil {
		return c, err
	}
	c.Doubtful = left.Doubtful
	if c.Written, err = p.replace(files); err != nil {
		return c, err
	}
	for _, name := range left.Stale {
		if err := os.Remove(p.onDisk(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
		c.Deleted = append(c.Deleted, name)
		p.removeEmpty(path.Dir(name))
	}
	return c, nil
}

// replace gives files their new content and returns those that changed, sorted.
func (p *Project) replace(files []File) ([]string, error) {
	all, errs := make([]staged, len(files)), make([]error, len(files))
	parallel(len(files), func(i int) { all[i], errs[i] = stage(p.onDisk(files[i].Name), files[i].Content) })
	if err := cmp.Or(errs...); err != nil {
		for i, s := range all {
			err = errors.Join(err, s.discard())
			p.removeEmpty(path.Dir(files[i].Name))
		}
		return nil, err
	}
	parallel(len(files), func(i int) { errs[i] = all[i].take() })
	var written []string
	for i, s := range all {
		if s.temp != "" && errs[i] == nil {
			written = append(written, files[i].Name)
		}
	}
	slices.Sort(written)
	return written, cmp.Or(errs...)
}

// onDisk is where a file of the project is.
func (p *Project) onDisk(name string) string {
	return filepath.Join(p.Dir, filepath.FromSlash(name))
}

// removeEmpty removes a folder of generated files, and those above, as far as
// they are empty now.
func (p *Project) removeEmpty(name string) {
	for ; name != "."; name = path.Dir(name) {
		if err := os.Remove(p.onDisk(name)); err != nil {
			return // something is in it, and it stays
		}
	}
}
