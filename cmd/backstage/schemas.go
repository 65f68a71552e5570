package main

import (
	"context"
	"flag"

	"github.com/backstage-go/backstage/codegen/compile"
	"github.com/backstage-go/backstage/internal/command"
)

// whichSchemas is the last paragraph of the help of commands that read schemas.
const whichSchemas = `The schemas are all .proto files of the Go module around the working directory,
without nested modules, vendor, testdata, and folders that begin with a dot or
an underscore. The folders that they are imported from are those of -root, else
"roots" of backstage.yaml, else the modules of buf.yaml, else they follow from
the packages: shop/v1/x.proto of package shop.v1 lies right below one. Such a
folder may be a symbolic link; links to folders below it are not followed, as the
go tool does not, with a warning where schemas are behind one.`

// schemaFlags are the flags of all commands that read schemas.
func schemaFlags(set *flag.FlagSet) *compile.Options {
	o := &compile.Options{}
	set.StringVar(&o.Dir, "C", "", "work as if started in `dir`")
	set.Func("root", "`folder` that schemas are imported from; may be repeated", list(&o.Roots))
	set.Func("I", "`folder or Go module` that only serves imports; may be repeated", list(&o.Imports))
	set.StringVar(&o.DescriptorSet, "descriptor-set", "",
		"read `file` in place of sources, as written by buf build -o, or by\nprotoc --include_imports --include_source_info -o")
	return o
}

func list(into *[]string) func(string) error {
	return func(s string) error {
		*into = append(*into, s)
		return nil
	}
}

// loadTasks loads schemas for a command that only shows their tasks: errors are
// printed, warnings are for vet.
func loadTasks(ctx context.Context, c *command.Console, o *compile.Options) (*compile.Project, error) {
	project, err := compile.Load(ctx, *o)
	if err != nil {
		return nil, err
	}
	if errs := project.Diagnostics.Errors(); errs != nil {
		project.Diagnostics = errs
		if err := project.Report(c.Err); err != nil {
			return nil, err
		}
		return nil, command.ErrShown
	}
	return project, nil
}
