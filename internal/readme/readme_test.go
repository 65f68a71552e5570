package readme

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// block returns the README's code block of a language; there must be one.
func block(t *testing.T, readme, language string) string {
	t.Helper()
	found := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(readme, -1)
	if len(found) != 1 {
		t.Fatalf("the README has %d blocks of %s, want 1", len(found), language)
	}
	return found[0][1]
}

func read(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheReadmeIsShort(t *testing.T) {
	t.Parallel()
	if lines := strings.Count(read(t), "\n"); lines > 200 {
		t.Errorf("the README has %d lines, want at most 200", lines)
	}
}

// TestTheReadmesProgramRuns follows the README in a module outside this
// repository, with this checkout in the place of the published module.
func TestTheReadmesProgramRuns(t *testing.T) {
	t.Parallel()
	readme := read(t)
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":                          module(t, checkout),
		"go.sum":                          contents(t, filepath.Join(checkout, "go.sum")),
		"proto/shop/v1/order_tasks.proto": block(t, readme, "proto"),
		"main.go":                         block(t, readme, "go"),
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(readme, "`proto/shop/v1/order_tasks.proto`") {
		t.Error("the README does not say where its schema goes")
	}
	command(t, dir, "go", "tool", "backstage", "generate")
	command(t, dir, "go", "vet", "./...")
	command(t, dir, "go", "build", "-o", "shop.exe", ".")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shop := exec.CommandContext(ctx, filepath.Join(dir, "shop.exe"))
	shop.Dir = dir
	stderr, err := shop.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shop.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for buf := make([]byte, 4096); !strings.Contains(said.String(), "receipt for A-1009"); {
		n, err := stderr.Read(buf)
		said.Write(buf[:n])
		if err != nil {
			t.Errorf("the program ended before its chain did: %v", err)
			break
		}
	}
	_ = shop.Process.Kill()
	_ = shop.Wait() // it was killed
	if t.Failed() {
		t.Logf("it said:\n%s", said.String())
	}
}

// module returns a user's go.mod: ours, with its versions, under another name.
func module(t *testing.T, checkout string) string {
	t.Helper()
	ours := contents(t, filepath.Join(checkout, "go.mod"))
	ours = regexp.MustCompile(`(?m)^tool .*$|(?ms)^tool \(.*?^\)$`).ReplaceAllString(ours, "")
	ours = strings.Replace(ours, "module github.com/backstage-go/backstage\n", "module example.com/shop\n", 1)
	return ours + `
require github.com/backstage-go/backstage v0.0.0
replace github.com/backstage-go/backstage => ` + checkout + `
tool github.com/backstage-go/backstage/cmd/backstage
`
}

func contents(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
