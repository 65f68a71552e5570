package main

import (
	"errors"
	"os"
)

// freeze cannot be had here.
func freeze(*os.Process) error { return errors.ErrUnsupported }
