package compile

import (
	"errors"
	"io/fs"
	"os"
	"slices"
)

// Pending returns what Write would do, and does nothing.
func (p *Project) Pending(files []File) (Changes, error) {
	var c Changes
	for _, f := range files {
		have, err := os.ReadFile(p.onDisk(f.Name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
		if err == nil && string(have) != f.Content && !isGenerated(string(have)) {
			return c, inTheWay(p.onDisk(f.Name))
		}
		if err != nil || string(have) != f.Content {
			c.Written = append(c.Written, f.Name)
		}
	}
	slices.Sort(c.Written)
	left, err := p.Leftovers(files)
	c.Deleted, c.Doubtful = left.Stale, left.Doubtful
	return c, err
}
