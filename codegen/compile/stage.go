package compile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// A staged file has its new content beside it, to take its place in one step: a
// run that fails, or that another one overtakes, leaves no half of a file.
type staged struct {
	name string
	// temp is the file with the new content, "" when nothing changes.
	temp string
}

// stage prepares a file's new content. It refuses what would fail later, and to
// overwrite what was not generated.
func stage(name, content string) (staged, error) {
	have, err := os.ReadFile(name)
	switch {
	case err == nil && string(have) == content:
		return staged{}, nil
	case err == nil && !isGenerated(string(have)):
		return staged{}, inTheWay(name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return staged{}, err
	}
	mode := fs.FileMode(0o644)
	if err == nil {
		if name, mode, err = writable(name); err != nil {
			return staged{}, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return staged{}, err
	}
	s := staged{name: name, temp: filepath.Join(filepath.Dir(name), fmt.Sprintf(".backstage.%x.tmp", rand.Uint64()))}
	if err := os.WriteFile(s.temp, []byte(content), mode); err != nil {
		return staged{}, errors.Join(err, s.discard())
	}
	return s, nil
}

func inTheWay(name string) error {
	return fmt.Errorf("%s is in the way: it was not generated, so it is not overwritten; move it, or let the schema generate elsewhere", name)
}

// writable returns the file behind a name, which may be a link, and its mode, or
// why it must not be written.
func writable(name string) (string, fs.FileMode, error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", 0, err
	}
	f, err := os.OpenFile(real, os.O_WRONLY, 0)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	return real, info.Mode().Perm(), nil
}

// take puts the new content in its place.
func (s staged) take() error {
	if s.temp == "" {
		return nil
	}
	if err := os.Rename(s.temp, s.name); err != nil {
		return errors.Join(err, s.discard())
	}
	return nil
}

// discard removes the new content.
func (s staged) discard() error {
	if s.temp == "" {
		return nil
	}
	if err := os.Remove(s.temp); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// isGenerated says whether a file has the line by which Go knows generated files,
// or nothing in it.
func isGenerated(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "// Code generated ") && strings.HasSuffix(line, " DO NOT EDIT.") {
			return true
		}
	}
	return text == ""
}
