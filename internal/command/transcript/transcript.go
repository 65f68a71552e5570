// Package transcript tests command-line programs by what they print.
//
// Each archive in testdata is a folder's files, the commands that its comment
// names after "$", and the transcript of all of them. A test program rewrites the
// transcripts when it is called with -update; read the diff.
package transcript

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

const wanted = "want"

// Play runs one command and returns what it printed.
type Play func(t *testing.T, words []string) string

// Run plays every testdata/*.txtar in a folder of its own, by what open returns
// for the folder, and compares. With update it rewrites them.
func Run(t *testing.T, update bool, open func(t *testing.T, dir string) Play) {
	t.Helper()
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
			got := play(t, archive, open)
			if update {
				archive.Files = append(archive.Files, txtar.File{Name: wanted, Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got); rewrite it with: go test -update\n%s", name, diff)
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

// play runs the commands of an archive in a folder with its files.
func play(t *testing.T, archive *txtar.Archive, open func(t *testing.T, dir string) Play) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range archive.Files {
		Put(t, dir, f.Name, string(f.Data))
	}
	one := open(t, dir)
	var out strings.Builder
	for line := range strings.SplitSeq(string(archive.Comment), "\n") {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			fmt.Fprintln(&out, line)
			out.WriteString(one(t, Words(command)))
		}
	}
	return out.String()
}

// Words splits a command line. Single quotes keep blanks together.
func Words(line string) []string {
	var out []string
	quoted, begun := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted = !quoted
			if !begun {
				out, begun = append(out, ""), true
			}
		case r == ' ' && !quoted:
			begun = false
		case !begun:
			out, begun = append(out, string(r)), true
		default:
			out[len(out)-1] += string(r)
		}
	}
	return out
}

// Put writes a file of a test, and the folders to it.
func Put(t *testing.T, dir, name, text string) {
	t.Helper()
	disk := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(disk), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(disk, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Result is what a command printed and returned.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// String is how a result stands in a transcript: standard error with a "!" in
// front, and the exit code unless it is 0.
func (r Result) String() string {
	text := r.Stdout
	for line := range strings.Lines(r.Stderr) {
		text += "! " + line
	}
	if r.Code != 0 {
		text += fmt.Sprintf("exit %d\n", r.Code)
	}
	return text
}
