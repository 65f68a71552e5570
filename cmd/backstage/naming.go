package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/backstage-go/backstage/schema"
	"github.com/backstage-go/backstage/templates"
)

// word makes a name of a folder's: letters and digits, in lower case.
func word(folder string) string {
	return regexp.MustCompile(`[^a-z0-9]`).ReplaceAllString(strings.ToLower(folder), "")
}

// checkName says why a project cannot have a name.
func checkName(name string) error {
	switch {
	case !regexp.MustCompile(`^[a-z][a-z0-9]*$`).MatchString(name):
		return errors.New("it must be lower-case letters and digits, a letter first")
	case token.IsKeyword(name):
		return errors.New("it is a keyword of Go")
	case slices.Contains([]string{"backstage", "google", "internal", "vendor", "testdata"}, name):
		return errors.New("it means something else already")
	}
	return nil
}

// otherPackage refuses a folder with Go of another package than main, which the
// project's files could not share it with.
func (p *project) otherPackage(mod *goMod) error {
	names, err := filepath.Glob(filepath.Join(p.dir, "*.go"))
	if err != nil {
		return err
	}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly)
		if err == nil && file.Name.Name != "main" {
			return fmt.Errorf("%s is of package %s, and a program needs a folder of its own: backstage init %s",
				p.print(filepath.Base(name)), file.Name.Name, quoted(p.anotherFolder(mod)))
		}
	}
	return nil
}

// anotherFolder returns where the project could go instead: a folder of its name
// among the module's commands, with a number if that is taken.
func (p *project) anotherFolder(mod *goMod) string {
	cwd, err := filepath.Abs(p.cwd)
	if err != nil {
		cwd = p.dir
	}
	free := filepath.Join(mod.Dir, "cmd", p.name)
	for n := 2; exists(free); n++ {
		free = filepath.Join(mod.Dir, "cmd", fmt.Sprint(p.name, n))
	}
	if rel, err := filepath.Rel(cwd, free); err == nil {
		return rel
	}
	return free
}

// quoted writes a path as a shell reads it.
func quoted(name string) string {
	if regexp.MustCompile(`^[A-Za-z0-9_./\\:@%+,-]+$`).MatchString(name) && !strings.HasPrefix(name, "-") {
		return name
	}
	if strings.HasPrefix(name, "-") {
		name = "./" + name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// optionFiles returns the copies of Backstage's schemas that editors and buf
// read. generate leaves them alone.
func optionFiles() ([]templates.File, error) {
	const name = "backstage/v1/options.proto"
	text, err := fs.ReadFile(schema.Files, name)
	return []templates.File{{Name: "proto/" + name, Content: string(text), Kept: true}}, err
}
