package compile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/backstage-go/backstage/codegen/gomod"
)

// A module is the Go module whose schemas are compiled.
type module struct{ gomod.Module }

// findModule reads the nearest go.mod at or above a folder.
func findModule(dir string) (*module, error) {
	found, err := gomod.Find(dir, modfile.ParseLax)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fmt.Errorf("no go.mod at or above %s; write a first project with: backstage init shop (or start an empty module with: go mod init example.com/shop)", dir)
	}
	return &module{*found}, nil
}

// owns says whether a folder is part of the module: inside it, and not in a
// nested module.
func (m *module) owns(dir string) bool {
	if !within(m.Dir, dir) {
		return false
	}
	for at := dir; at != m.Dir; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return false
		}
	}
	return true
}

// outFile returns where a generated file goes, which protoc names by the import
// path of its package, and false when that is not in the module.
func (m *module) outFile(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, m.Path+"/")
	return rest, ok
}

// dependency returns the folder of a Go module, or of a folder in one, that the
// module requires.
func (m *module) dependency(ctx context.Context, want string) (string, error) {
	longest := ""
	for _, r := range m.File.Require {
		mod := r.Mod.Path
		if (want == mod || strings.HasPrefix(want, mod+"/")) && len(mod) > len(longest) {
			longest = mod
		}
	}
	if longest == "" {
		return "", fmt.Errorf("%s is no folder, and go.mod requires no such module; add it with: go get %s", want, want)
	}
	dir, err := m.goList(ctx, longest)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(want, longest))), nil
}

func (m *module) goList(ctx context.Context, mod string) (string, error) {
	// A folder vendor has no schemas, so list looks past it.
	for _, args := range [][]string{{"mod", "download", mod}, {"list", "-mod=readonly", "-m", "-f", "{{.Dir}}", mod}} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = m.Dir
		out, err := cmd.Output()
		if err != nil && args[0] == "list" {
			return "", fmt.Errorf("go list -m %s: %w%s", mod, err, stderrOf(err))
		}
		if dir := strings.TrimSpace(string(out)); args[0] == "list" && dir != "" {
			return dir, nil
		}
	}
	return "", fmt.Errorf("go has no folder for module %s; try: go mod download %s", mod, mod)
}

func stderrOf(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "\n" + string(exit.Stderr)
	}
	return ""
}

// within says whether a path is a folder or inside it.
func within(dir, p string) bool {
	rel, err := filepath.Rel(dir, p)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
