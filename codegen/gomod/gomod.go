// Package gomod reads the go.mod of the Go module that a folder is in.
package gomod

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// Module is a Go module by its go.mod.
type Module struct {
	// Dir is its root.
	Dir string
	// Path is what the import paths of its packages begin with.
	Path string
	// File is its go.mod.
	File *modfile.File
}

// Parser is modfile.Parse, or modfile.ParseLax for a program that writes nothing
// back, and so need not know all that a later Go may put into a go.mod.
type Parser func(name string, text []byte, fix modfile.VersionFixer) (*modfile.File, error)

// Find reads the nearest go.mod at or above a folder, nil when there is none.
func Find(dir string, parse Parser) (*Module, error) {
	for at := dir; ; at = filepath.Dir(at) {
		name := filepath.Join(at, "go.mod")
		text, err := os.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && at == filepath.Dir(at):
			return nil, nil
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		file, err := parse(name, text, nil)
		if err != nil {
			return nil, err
		}
		if file.Module == nil {
			return nil, fmt.Errorf("%s names no module", name)
		}
		return &Module{Dir: at, Path: file.Module.Mod.Path, File: file}, nil
	}
}

// ImportPath is by what Go imports a folder of the module.
func (m *Module) ImportPath(dir string) string {
	rel, err := filepath.Rel(m.Dir, dir)
	if err != nil {
		return m.Path
	}
	return path.Join(m.Path, filepath.ToSlash(rel))
}
