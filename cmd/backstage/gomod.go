package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/backstage-go/backstage/internal/command"
)

const (
	modulePath = "github.com/backstage-go/backstage"
	toolPath   = modulePath + "/cmd/backstage"
)

// A goMod is the go.mod of the module that a project is in.
type goMod struct {
	dir  string
	file *modfile.File
	// isNew says that it is not on disk yet.
	isNew bool
	// before is its content on disk.
	before string
}

// findGoMod reads the nearest go.mod at or above a folder, nil when there is
// none.
func findGoMod(dir string) (*goMod, error) {
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
		file, err := modfile.Parse(name, text, nil)
		if err != nil {
			return nil, err
		}
		if file.Module == nil {
			return nil, fmt.Errorf("%s names no module", name)
		}
		return &goMod{dir: at, file: file, before: string(text)}, nil
	}
}

// newGoMod makes a go.mod that is not on disk yet.
func newGoMod(dir, modPath, name string) (*goMod, error) {
	if modPath == "" {
		modPath = "example.com/" + name
	}
	if err := module.CheckImportPath(modPath); err != nil {
		return nil, command.Usagef("-module: %v", err)
	}
	mod := &goMod{dir: dir, file: &modfile.File{}, isNew: true}
	if err := mod.file.AddModuleStmt(modPath); err != nil {
		return nil, err
	}
	return mod, mod.file.AddGoStmt(goVersion())
}

// goVersion is the version of the language that a new module uses: that of the
// Go that built this program.
func goVersion() string {
	version := strings.TrimPrefix(runtime.Version(), "go")
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 || !modfile.GoVersionRE.MatchString(parts[0]+"."+parts[1]) {
		return "1.26.0"
	}
	return parts[0] + "." + parts[1] + ".0"
}

func (m *goMod) path() string { return m.file.Module.Mod.Path }

// importPath is by what Go imports a folder of the module.
func (m *goMod) importPath(dir string) string {
	rel, err := filepath.Rel(m.dir, dir)
	if err != nil {
		return m.path()
	}
	return path.Join(m.path(), filepath.ToSlash(rel))
}

// use adds what a module needs to use Backstage, in the version of this program.
// What is there already stays.
func (m *goMod) use(replace string) error {
	if err := m.file.AddTool(toolPath); err != nil {
		return err
	}
	for _, r := range m.file.Require {
		if r.Mod.Path == modulePath {
			return nil
		}
	}
	version, dir := command.Version(), replace
	if dir == "" {
		dir = checkout()
	}
	if dir == "" {
		if version == command.Unreleased {
			return command.Usagef("this program does not know its version; name a checkout of Backstage: -replace DIR")
		}
		return m.file.AddRequire(modulePath, version)
	}
	if err := isCheckout(dir); err != nil {
		return command.Usagef("-replace: %v", err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return errors.Join(
		m.file.AddRequire(modulePath, "v0.0.0"),
		m.file.AddReplace(modulePath, "", abs, ""))
}

// write writes the file if it changed.
func (m *goMod) write() (bool, error) {
	m.file.Cleanup()
	text, err := m.file.Format()
	if err != nil || string(text) == m.before {
		return false, err
	}
	return true, writeFile(filepath.Join(m.dir, "go.mod"), text)
}

// shownFrom is where go.mod is, seen from a folder.
func (m *goMod) shownFrom(dir string) string {
	rel, err := filepath.Rel(dir, m.dir)
	if err != nil {
		rel = m.dir
	}
	return filepath.Join(rel, "go.mod")
}
