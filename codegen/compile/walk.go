package compile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// findSchemas returns all .proto files below a folder, sorted. It leaves out
// nested modules, vendor, testdata, node_modules, and folders that begin with a
// dot or an underscore, and what symbolic links to folders lead to, as the go tool
// does.
func findSchemas(dir string, excluded []string) ([]string, error) {
	var out []string
	err := walk(dir, excluded, func(file string, _ fs.DirEntry) {
		if strings.HasSuffix(file, ".proto") {
			out = append(out, file)
		}
	})
	return out, err
}

// walk visits all files below a folder, and symbolic links as what they are. The
// folder itself may be a link.
func walk(dir string, excluded []string, visit func(file string, entry fs.DirEntry)) error {
	root := dir
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		root = dir + string(filepath.Separator) + "." // what it leads to, under its own name
	}
	return filepath.WalkDir(root, func(p string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && p != root:
			return nil // another run has removed it meanwhile
		case err != nil:
			return err
		}
		if entry.IsDir() {
			if p != root && (skipped(p, entry.Name()) || slices.Contains(excluded, p)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains(excluded, p) {
			visit(p, entry)
		}
		return nil
	})
}

func skipped(p, name string) bool {
	switch {
	case name == "vendor", name == "testdata", name == "node_modules":
		return true
	case strings.HasPrefix(name, "."), strings.HasPrefix(name, "_"):
		return true
	}
	_, err := os.Stat(filepath.Join(p, "go.mod"))
	return err == nil
}
