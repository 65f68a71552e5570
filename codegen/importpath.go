package codegen

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/module"
)

// CheckImportPath says why Go cannot import a package by a path, nil if it can.
// protobuf takes more than Go does.
func CheckImportPath(p string) error {
	var invalid *module.InvalidPathError
	if err := module.CheckImportPath(p); errors.As(err, &invalid) {
		return invalid.Err
	}
	for folder := range strings.SplitSeq(p, "/") {
		switch {
		case strings.HasPrefix(folder, "-"):
			return fmt.Errorf("folder %s begins with a dash", folder)
		case folder == "vendor":
			return errors.New("a folder vendor holds copies of other modules")
		}
	}
	return nil
}
