package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"path/filepath"

	"github.com/backstage-go/backstage/codegen/compile"
	"github.com/backstage-go/backstage/internal/command"
)

func generateCommand() *command.Command {
	return &command.Command{
		Name:    "generate",
		Summary: "write Go for the schemas of the module",
		About: `Generate compiles the schemas of a module and writes Go for them: the messages'
(*.pb.go, as protoc-gen-go does) and a package for each task service
(tasks.backstage.go). It needs neither protoc nor buf. Only files whose content
changed are written, all or none, and it says which. Nothing is written while a
schema has an error, and nothing that was not generated is overwritten. What was
generated for a task service or a schema that is gone, or that generates to
another folder now, is deleted; a left-over *.pb.go that may be somebody else's is
left alone, with a warning.

Most modules call it by go generate, with a line in a Go file:

  //go:generate go tool backstage generate

` + whichSchemas + `
Edition 2024 needs buf or protoc to compile and comes in by -descriptor-set.`,
		Examples: `backstage generate                   # everything
backstage generate -check            # in CI: is everything generated?
backstage generate -root api -I third_party
buf build -o image.binpb && backstage generate -descriptor-set image.binpb`,
		Codes: `0  all is written, or was already
1  a schema has errors; with -check: something is not as generated
2  wrong usage
3  it could not be done: no go.mod, a file that cannot be read or written`,
		Flags: func(set *flag.FlagSet) command.Action {
			g := &generation{options: schemaFlags(set), format: command.FormatFlag(set, "text", "json")}
			set.BoolVar(&g.check, "check", false, "write nothing; say what would change, and exit with 1 if anything would")
			set.BoolVar(&g.verbose, "v", false, "say for each schema without task services why there is no package for it,\nand when there was nothing to do")
			return g.run
		},
	}
}

// A generation is one run of the command.
type generation struct {
	options        *compile.Options
	format         *string
	check, verbose bool
	// below is where the working directory is, as it is printed; "" for here.
	below string
}

// generated is its result in JSON.
type generated struct {
	Written     []string  `json:"written"`
	Deleted     []string  `json:"deleted"`
	Nothing     []nothing `json:"nothing"`
	Diagnostics []finding `json:"diagnostics"`
}

func (g *generation) run(ctx context.Context, c *command.Console, _ []string) error {
	project, err := compile.Load(ctx, *g.options)
	if err := cmp.Or(interrupted(ctx), err); err != nil {
		return err
	}
	if *g.format == "text" {
		if err := project.Report(c.Err); err != nil {
			return err
		}
	}
	var changes compile.Changes
	wrong := project.Diagnostics.Errors() != nil
	if !wrong {
		if changes, err = g.write(ctx, project); err != nil {
			return err
		}
		project.Diagnostics = append(project.Diagnostics, changes.Doubtful...)
		if *g.format == "text" {
			if err := changes.Doubtful.Render(c.Err, nil); err != nil {
				return err
			}
		}
	}
	if err := g.print(c, project, changes); err != nil {
		return err
	}
	if wrong || g.check && len(changes.Written)+len(changes.Deleted) > 0 {
		return command.ErrShown
	}
	return nil
}

// write writes what is generated. It is not interrupted in the middle of it.
func (g *generation) write(ctx context.Context, project *compile.Project) (compile.Changes, error) {
	files, err := project.Generate()
	if err != nil {
		return compile.Changes{}, err
	}
	if g.check {
		return project.Pending(files)
	}
	if err := interrupted(ctx); err != nil {
		return compile.Changes{}, err
	}
	return project.Write(files)
}

// interrupted is the error of a run that is to end before it writes anything, nil
// for one that goes on.
func interrupted(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("%w: no Go is written", context.Cause(ctx))
}

func (g *generation) print(c *command.Console, project *compile.Project, changes compile.Changes) error {
	if *g.format == "json" {
		return c.JSON(generated{
			Written:     orEmpty(changes.Written),
			Deleted:     orEmpty(changes.Deleted),
			Nothing:     orEmpty(withoutTasks(project)),
			Diagnostics: findingsOf(project.Diagnostics),
		})
	}
	wrote, deleted := "wrote", "deleted"
	if g.check {
		wrote, deleted = "would write", "would delete"
	}
	for _, name := range changes.Written {
		fmt.Fprintln(c.Out, wrote, g.shown(project, name))
	}
	for _, name := range changes.Deleted {
		fmt.Fprintln(c.Out, deleted, g.shown(project, name))
	}
	if g.verbose {
		if project.Diagnostics.Errors() == nil && len(changes.Written)+len(changes.Deleted) == 0 {
			fmt.Fprintf(c.Out, "nothing to do: all is as generated for %s\n", count(len(project.Schemas), "schema"))
		}
		for _, n := range withoutTasks(project) {
			fmt.Fprintf(c.Out, "no task package for %s: %s\n", n.Schema, n.Why)
		}
	}
	return nil
}

// shown returns a file of the project as seen from the working directory.
func (g *generation) shown(project *compile.Project, name string) string {
	disk := filepath.Join(project.Dir, filepath.FromSlash(name))
	cwd, err := filepath.Abs(g.options.Dir)
	if err != nil {
		return disk
	}
	rel, err := filepath.Rel(cwd, disk)
	if err != nil {
		return disk
	}
	return filepath.Join(g.below, rel)
}
