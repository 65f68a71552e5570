package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
)

// checkout returns the root of the checkout that this program was built from, ""
// if it was built from a released version, which lies in the module cache.
func checkout() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) || strings.Contains(file, "@v") {
		return ""
	}
	dir := filepath.Dir(filepath.Dir(filepath.Dir(filepath.FromSlash(file))))
	if isCheckout(dir) != nil {
		return ""
	}
	return dir
}

// isCheckout says why a folder is no checkout of Backstage.
func isCheckout(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	if path := modfile.ModulePath(text); path != modulePath {
		return fmt.Errorf("%s is module %s, not %s", dir, path, modulePath)
	}
	return nil
}
