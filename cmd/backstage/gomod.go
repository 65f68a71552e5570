package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/backstage-go/backstage/codegen/gomod"
	"github.com/backstage-go/backstage/internal/command"
)

const (
	modulePath = "github.com/backstage-go/backstage"
	toolPath   = modulePath + "/cmd/backstage"
)

// A goMod is the go.mod of the module that a project is in.
type goMod struct {
	gomod.Module
	// isNew says that it is not on disk yet.
	isNew bool
}

// findGoMod reads the nearest go.mod at or above a folder, nil when there is
// none.
func findGoMod(dir string) (*goMod, error) {
	found, err := gomod.Find(dir, modfile.Parse)
	if err != nil || found == nil {
		return nil, err
	}
	return &goMod{Module: *found}, nil
}

// newGoMod makes a go.mod that is not on disk yet.
func newGoMod(dir, modPath, name string) (*goMod, error) {
	if modPath == "" {
		modPath = "example.com/" + name
	}
	if err := module.CheckImportPath(modPath); err != nil {
		return nil, command.Usagef("-module: %v", err)
	}
	mod := &goMod{gomod.Module{Dir: dir, Path: modPath, File: &modfile.File{}}, true}
	if err := mod.File.AddModuleStmt(modPath); err != nil {
		return nil, err
	}
	return mod, mod.File.AddGoStmt(goVersion())
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

// use adds what a module needs to use Backstage, in the version of this program.
// What is there already stays.
func (m *goMod) use(replace string) error {
	if err := m.File.AddTool(toolPath); err != nil {
		return err
	}
	for _, r := range m.File.Require {
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
		return m.File.AddRequire(modulePath, version)
	}
	if err := isCheckout(dir); err != nil {
		return command.Usagef("-replace: %v", err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return errors.Join(
		m.File.AddRequire(modulePath, "v0.0.0"),
		m.File.AddReplace(modulePath, "", abs, ""))
}

// write writes the file if it changed.
func (m *goMod) write() (bool, error) {
	m.File.Cleanup()
	text, err := m.File.Format()
	if err != nil {
		return false, err
	}
	disk := filepath.Join(m.Dir, "go.mod")
	if have, err := os.ReadFile(disk); err == nil && bytes.Equal(have, text) {
		return false, nil
	}
	return true, writeFile(disk, text)
}

// shownFrom is where go.mod is, seen from a folder.
func (m *goMod) shownFrom(dir string) string {
	rel, err := filepath.Rel(dir, m.Dir)
	if err != nil {
		rel = m.Dir
	}
	return filepath.Join(rel, "go.mod")
}
