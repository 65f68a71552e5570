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
				copies, err := copiesToWrite(*dir, operands[0])
				if err != nil {
					return err
				}
				if err := copies.differing(operands[0]); err != nil && !*force {
					return err
				}
				return copies.write(c)
			}
		},
	}
}

// A schemaCopy is one of Backstage's schemas below a folder of the user's.
type schemaCopy struct {
	// disk is where it belongs, shown how that is printed.
	disk, shown string
	text        []byte
	// exists says that another content is there.
	exists bool
}

type schemaCopies []schemaCopy

// copiesToWrite returns the schemas that are not below a folder as they should be.
func copiesToWrite(dir, root string) (schemaCopies, error) {
	var out schemaCopies
	err := fs.WalkDir(schema.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(schema.Files, name)
		if err != nil {
			return err
		}
		disk := within(dir, root, name)
		have, err := os.ReadFile(disk)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil || !bytes.Equal(have, text) {
			out = append(out, schemaCopy{disk, filepath.Join(root, filepath.FromSlash(name)), text, err == nil})
		}
		return nil
	})
	return out, err
}

// differing is an error if a file with other content would be overwritten.
func (copies schemaCopies) differing(root string) error {
	for _, one := range copies {
		if one.exists {
			return fmt.Errorf("%s is there with other content; overwrite with: backstage proto -f %s", one.shown, root)
		}
	}
	return nil
}

func (copies schemaCopies) write(c *command.Console) error {
	for _, one := range copies {
		if err := writeFile(one.disk, one.text); err != nil {
			return err
		}
		fmt.Fprintln(c.Out, "wrote", one.shown)
	}
	return nil
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
