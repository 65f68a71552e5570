package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/backstage-go/backstage/internal/command"
	"github.com/backstage-go/backstage/schema"
)

func protoCommand() *command.Command {
	return &command.Command{
		Name:     "proto",
		Operands: "DIR",
		Summary:  "write the options' schema where protoc, buf and editors find it",
		About: `Proto writes Backstage's own schemas below a folder, at the paths by which they
are imported: DIR/backstage/v1/options.proto, which schemas import, and
record.proto, the form of a stored job. Backstage itself has both built in; the
copies are for protoc, buf and editors, and generate writes no Go for them. Keep
them below the folder that your schemas are imported from, and nowhere else: the
path is part of what they are.

A file with other content is left alone unless -f is given.`,
		Examples: `backstage proto proto            # proto/backstage/v1/options.proto
backstage proto -f proto         # after an update of Backstage
protoc -I proto --go_out=. --backstage_out=. proto/shop/v1/shop_tasks.proto`,
		Codes: `0  the files are there
2  wrong usage
3  a file has other content, or could not be written`,
		Flags: func(set *flag.FlagSet) command.Action {
			dir := set.String("C", "", "work as if started in `dir`")
			force := set.Bool("f", false, "overwrite files with other content")
			return func(_ context.Context, c *command.Console, operands []string) error {
				if len(operands) != 1 {
					return command.Usagef("it takes one folder, the one that your schemas are imported from")
				}
				return writeSchemas(c, *dir, operands[0], *force)
			}
		},
	}
}

// writeSchemas writes all of Backstage's schemas, or none if one would be
// overwritten.
func writeSchemas(c *command.Console, dir, root string, force bool) error {
	var names, differing []string
	err := fs.WalkDir(schema.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		same, exists, err := compared(within(dir, root, name), name)
		if err != nil || same {
			return err
		}
		names = append(names, name)
		if exists {
			differing = append(differing, filepath.Join(root, filepath.FromSlash(name)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(differing) > 0 && !force {
		return fmt.Errorf("%s is there with other content; overwrite with: backstage proto -f %s", differing[0], root)
	}
	for _, name := range names {
		if err := writeSchema(within(dir, root, name), name); err != nil {
			return err
		}
		fmt.Fprintln(c.Out, "wrote", filepath.Join(root, filepath.FromSlash(name)))
	}
	return nil
}

// compared says whether a copy of a schema is as it should be, and whether it is
// there at all.
func compared(disk, name string) (same, exists bool, err error) {
	want, err := fs.ReadFile(schema.Files, name)
	if err != nil {
		return false, false, err
	}
	have, err := os.ReadFile(disk)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	return bytes.Equal(have, want), true, err
}

func writeSchema(disk, name string) error {
	text, err := fs.ReadFile(schema.Files, name)
	if err != nil {
		return err
	}
	return writeFile(disk, text)
}

// writeFile writes a file, and the folders to it.
func writeFile(disk string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(disk), 0o755); err != nil {
		return err
	}
	return os.WriteFile(disk, text, 0o644)
}

// within returns where a name with slashes below a root is, seen from dir.
func within(dir, root, name string) string {
	if !filepath.IsAbs(root) {
		root = filepath.Join(dir, root)
	}
	return filepath.Join(root, filepath.FromSlash(name))
}
