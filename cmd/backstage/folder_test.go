package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestAFolderThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "go.mod", "module example.com/above\n") // which is not meant
	put(t, dir, "file", "")
	for _, cmd := range commands() {
		if !hasFlag(cmd.Name, "C") {
			continue
		}
		for name, want := range map[string]string{"nowhere": "there is no such folder", "file": "it is no folder"} {
			words := []string{cmd.Name, "-C", filepath.Join(dir, name)}
			if cmd.Operands != "" {
				words = append(words, "x")
			}
			got := plain(words...)
			if got.Code != exitFailed || !strings.Contains(got.Stderr, name+": "+want) {
				t.Errorf("%v: %+v", words, got)
			}
		}
	}
	if want := "file\ngo.mod\n"; listing(t, dir) != want {
		t.Errorf("something was written:\n%s", listing(t, dir))
	}
}

func TestAnEmptyFolderIsToldHowToBegin(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"generate", "vet", "tasks", "graph"} {
		got := backstage(t, t.TempDir(), name)
		if got.Code != exitFailed || !strings.Contains(got.Stderr, "backstage init") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
