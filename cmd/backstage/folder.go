package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
)

// missing refuses to work in a folder that is not there, which would look like
// one that has nothing in it.
func missing(set *flag.FlagSet) error {
	dir := set.Lookup("C")
	if dir == nil || dir.Value.String() == "" {
		return nil
	}
	info, err := os.Stat(dir.Value.String())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("-C %s: there is no such folder", dir.Value)
	case err == nil && !info.IsDir():
		return fmt.Errorf("-C %s: it is no folder", dir.Value)
	}
	return err
}
