package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/internal/command/transcript"
)

// update rewrites the transcripts: go test ./cmd/backstage -update.
var update = flag.Bool("update", false, "rewrite what commands print")

// The transcripts in testdata. Beside backstage's own commands there are cd, mv, rm
// and ls.
func TestCommandsPrintThis(t *testing.T) {
	t.Parallel()
	transcript.Run(t, *update, func(_ *testing.T, dir string) transcript.Play { return (&folder{dir}).play })
}

// A folder is where the commands of a transcript are played.
type folder struct{ dir string }

func (f *folder) play(t *testing.T, words []string) string {
	t.Helper()
	at := func(i int) string { return filepath.Join(f.dir, filepath.FromSlash(words[i])) }
	switch words[0] {
	case "cd":
		f.dir = at(1)
		return ""
	case "mv":
		if err := os.Rename(at(1), at(2)); err != nil {
			t.Fatal(err)
		}
		return ""
	case "rm":
		if err := os.Remove(at(1)); err != nil {
			t.Fatal(err)
		}
		return ""
	case "ls":
		return listing(t, f.dir)
	}
	text := backstage(t, f.dir, words...).String()
	if filepath.Separator != '/' {
		text = strings.ReplaceAll(text, string(filepath.Separator), "/")
	}
	return strings.ReplaceAll(text, filepath.ToSlash(f.dir), "$DIR")
}

// listing returns all files of a folder.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			fmt.Fprintln(&b, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

type result = transcript.Result

// backstage runs a command as if started in a folder.
func backstage(t *testing.T, dir string, words ...string) result {
	t.Helper()
	args := words
	if hasFlag(words[0], "C") {
		args = append([]string{words[0], "-C", dir}, words[1:]...)
	}
	return plain(args...)
}

// plain runs a command where nothing of it depends on the folder.
func plain(words ...string) result {
	var stdout, stderr bytes.Buffer
	code := program().Run(context.Background(), words, strings.NewReader(""), &stdout, &stderr)
	return result{Stdout: stdout.String(), Stderr: stderr.String(), Code: code}
}

// hasFlag says whether there is a command, and whether it has a flag.
func hasFlag(name, flag string) bool {
	cmd := program().Find(name)
	if cmd == nil {
		return false
	}
	set, _ := cmd.FlagSet()
	return set.Lookup(flag) != nil
}

// put writes a file of a test.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	transcript.Put(t, dir, name, text)
}
