package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/backstage-go/backstage/codegen/compile"
	"github.com/backstage-go/backstage/internal/command"
	"github.com/backstage-go/backstage/templates"
)

func initCommand() *command.Command {
	return &command.Command{
		Name:     "init",
		Operands: "[DIR]",
		Summary:  "write a first project that works",
		About: `Init writes a small project that works: a schema with a chain of two tasks, a
handler, a program that stores its jobs in a file (no server), and a test. Then it
generates, and lets go mod tidy fetch what the project needs.

In an empty folder it makes a Go module. In a folder of an existing module it adds
to that one: go.mod gets the lines by which go tool backstage works, and fetching
is left to you. It never overwrites a file: if one is in the way, it says which
and writes nothing. Only buf's configuration, .gitignore and the copy of
Backstage's options may be there already; they are left as they are.

A program built from a checkout of Backstage writes a replace line into go.mod, so
that the project uses the checkout.`,
		Examples: `backstage init shop                          # a new module in the folder shop
backstage init -module example.com/shop .    # here, under that import path
cd shop && go run .`,
		Codes: `0  the project is there
1  it is, but another schema of the module has errors
2  wrong usage
3  a file is in the way, could not be written, or go mod tidy failed`,
		Flags: func(set *flag.FlagSet) command.Action {
			p := &project{}
			set.StringVar(&p.cwd, "C", "", "work as if started in `dir`")
			set.StringVar(&p.module, "module", "", "import `path` of a new module (default example.com/NAME)")
			set.StringVar(&p.name, "name", "", "the `word` that the schema and its packages are named after\n(default the folder's name)")
			set.StringVar(&p.replace, "replace", "", "`folder` of a checkout of Backstage to use (default the one that this\nprogram was built from, if any)")
			set.BoolVar(&p.tidy, "tidy", true, "run go mod tidy in a new module")
			return p.run
		},
	}
}

// A project is one run of init.
type project struct {
	cwd, module, name, replace string
	tidy                       bool

	// dir is the project's folder, shown as it is printed.
	dir, shown string
}

func (p *project) run(ctx context.Context, c *command.Console, operands []string) error {
	if len(operands) > 1 {
		return command.Usagef("it takes one folder")
	}
	p.shown = "."
	if len(operands) == 1 {
		p.shown = operands[0]
	}
	var err error
	if p.dir, err = filepath.Abs(within(p.cwd, p.shown, "")); err != nil {
		return err
	}
	mod, err := p.findModule()
	if err != nil {
		return err
	}
	if err := p.named(); err != nil {
		return err
	}
	if mod == nil {
		if mod, err = newGoMod(p.dir, p.module, p.name); err != nil {
			return err
		}
	}
	if err := p.write(c, mod); err != nil {
		return err
	}
	if err := p.generate(ctx, c); err != nil {
		return err
	}
	tidied, err := p.fetch(ctx, c, mod)
	if err != nil {
		return err
	}
	p.whatNext(c, tidied)
	return nil
}

// findModule returns the module that the folder is in, nil where there is to be
// a new one.
func (p *project) findModule() (*goMod, error) {
	mod, err := findGoMod(p.dir)
	if err != nil || mod == nil {
		return nil, err
	}
	switch {
	case p.module == mod.Path || p.module == "" && mod.Path != modulePath:
		return mod, nil
	case p.module == "":
		return nil, command.Usagef("%s is in Backstage's own module; name a module for the project: -module example.com/shop", p.shown)
	case mod.Dir == p.dir:
		return nil, command.Usagef("-module %s: %s is in module %s already", p.module, p.shown, mod.Path)
	}
	return nil, nil
}

// named finds the word that everything is named after.
func (p *project) named() error {
	if p.name == "" {
		p.name = word(filepath.Base(p.dir))
		if err := checkName(p.name); err != nil {
			return command.Usagef("the folder's name gives none for the project (%v); give one: -name shop", err)
		}
		return nil
	}
	if err := checkName(p.name); err != nil {
		return command.Usagef("-name %s: %v", p.name, err)
	}
	return nil
}

// write writes all files, or none if one is in the way.
func (p *project) write(c *command.Console, mod *goMod) error {
	files, err := templates.Project{Name: p.name, Package: mod.ImportPath(p.dir)}.Files()
	if err != nil {
		return err
	}
	options, err := optionFiles()
	if err != nil {
		return err
	}
	files = append(files, options...)
	if err := p.inTheWay(mod, files); err != nil {
		return err
	}
	if err := mod.use(p.replace); err != nil {
		return err
	}
	for _, f := range files {
		disk := within("", p.dir, f.Name)
		if f.Kept && exists(disk) {
			fmt.Fprintln(c.Out, "kept ", p.print(f.Name)+needs(f))
			continue
		}
		if err := writeFile(disk, []byte(f.Content)); err != nil {
			return err
		}
		fmt.Fprintln(c.Out, "wrote", p.print(f.Name))
	}
	changed, err := mod.write()
	if changed {
		fmt.Fprintln(c.Out, "wrote", filepath.Join(p.shown, mod.shownFrom(p.dir)))
	}
	return err
}

// inTheWay returns an error that names all files that would be overwritten.
func (p *project) inTheWay(mod *goMod, files []templates.File) error {
	var there []string
	for _, f := range files {
		if !f.Kept && exists(within("", p.dir, f.Name)) {
			there = append(there, p.print(f.Name))
		}
	}
	if there != nil {
		return fmt.Errorf("nothing is written, because these files are there already: %s", strings.Join(there, ", "))
	}
	return p.otherPackage(mod)
}

func needs(f templates.File) string {
	if f.Needs == "" {
		return ""
	}
	return ", which needs " + f.Needs
}

func (p *project) print(name string) string {
	return filepath.Join(p.shown, filepath.FromSlash(name))
}

// generate generates what go generate does later.
func (p *project) generate(ctx context.Context, c *command.Console) error {
	format := "text"
	g := generation{options: &compile.Options{Dir: p.dir}, format: &format, below: p.shown}
	return g.run(ctx, c, nil)
}

// fetch lets go mod tidy find what a new module needs.
func (p *project) fetch(ctx context.Context, c *command.Console, mod *goMod) (bool, error) {
	if !mod.isNew || !p.tidy {
		return false, nil
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "tidy")
	cmd.Dir = mod.Dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return false, fmt.Errorf("the project is written, but go mod tidy failed: %w\n%s", err, out)
	}
	return true, nil
}

func (p *project) whatNext(c *command.Console, tidied bool) {
	fmt.Fprint(c.Out, "\nNext:\n")
	if p.shown != "." {
		fmt.Fprintf(c.Out, "  cd %s\n", quoted(p.shown))
	}
	if !tidied {
		fmt.Fprint(c.Out, "  go mod tidy      # fetch what is needed\n")
	}
	fmt.Fprintf(c.Out, "  go test .        # the handler, without a store\n"+
		"  go run .         # see it work; stop with Ctrl-C\n"+
		"  go generate      # after a change to proto/%s/v1/%s_tasks.proto\n", p.name, p.name)
}

func exists(disk string) bool {
	_, err := os.Lstat(disk)
	return err == nil
}
