package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// update rewrites the transcripts: go test ./cmd/backstage -update.
var update = flag.Bool("update", false, "rewrite what commands print")

const wanted = "want"

// Each archive in testdata is a folder's files, the commands that its comment
// names after "$", and the transcript of all of them: what each prints, standard
// error with a "!" in front, and its exit code unless 0. Beside backstage's own
// commands there are cd, mv, rm and ls.
func TestCommandsPrintThis(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want := split(archive)
			got := transcript(t, archive)
			if *update {
				archive.Files = append(archive.Files, txtar.File{Name: wanted, Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got); rewrite it with: go test ./cmd/backstage -update\n%s", name, diff)
			}
		})
	}
}

// split takes the transcript out of an archive.
func split(archive *txtar.Archive) string {
	want := ""
	var files []txtar.File
	for _, f := range archive.Files {
		if f.Name == wanted {
			want = string(f.Data)
		} else {
			files = append(files, f)
		}
	}
	archive.Files = files
	return want
}

// transcript runs the commands of an archive in a folder with its files.
func transcript(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range archive.Files {
		put(t, dir, f.Name, string(f.Data))
	}
	var out strings.Builder
	for line := range strings.SplitSeq(string(archive.Comment), "\n") {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		fmt.Fprintln(&out, line)
		if to, ok := strings.CutPrefix(command, "cd "); ok {
			dir = filepath.Join(dir, filepath.FromSlash(to))
			continue
		}
		out.WriteString(play(t, dir, strings.Fields(command)))
	}
	return out.String()
}

func play(t *testing.T, dir string, words []string) string {
	t.Helper()
	at := func(i int) string { return filepath.Join(dir, filepath.FromSlash(words[i])) }
	switch words[0] {
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
		return listing(t, dir)
	}
	r := backstage(t, dir, words...)
	text := r.stdout
	for line := range strings.Lines(r.stderr) {
		text += "! " + line
	}
	if r.code != exitOK {
		text += fmt.Sprintf("exit %d\n", r.code)
	}
	if filepath.Separator != '/' {
		text = strings.ReplaceAll(text, string(filepath.Separator), "/")
	}
	return strings.ReplaceAll(text, filepath.ToSlash(dir), "$DIR")
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

// A result is what a command printed and returned.
type result struct {
	stdout, stderr string
	code           int
}

// backstage runs a command as if started in a folder.
func backstage(t *testing.T, dir string, words ...string) result {
	t.Helper()
	args := words
	if cmd := find(words[0]); cmd != nil && cmd.hasFlag("C") {
		args = append([]string{words[0], "-C", dir}, words[1:]...)
	}
	var stdout, stderr bytes.Buffer
	code := run(args, strings.NewReader(""), &stdout, &stderr)
	return result{stdout.String(), stderr.String(), code}
}

func (cmd *command) hasFlag(name string) bool {
	set := cmd.flagSet()
	cmd.flags(set)
	return set.Lookup(name) != nil
}

// put writes a file of a test.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := writeFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text)); err != nil {
		t.Fatal(err)
	}
}
