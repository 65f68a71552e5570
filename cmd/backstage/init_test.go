package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// began returns a folder with a project that was not tidied.
func began(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "order-desk")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := backstage(t, dir, "init", "-tidy=false"); got.Code != exitOK || got.Stderr != "" {
		t.Fatalf("init: %+v", got)
	}
	return dir
}

func content(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAProjectIsNamedAfterItsFolderAndGenerated(t *testing.T) {
	t.Parallel()
	dir := began(t)
	want := `.gitignore
buf.gen.yaml
buf.yaml
gen/orderdesk/v1/orderdesk_tasks.pb.go
gen/orderdesk/v1/orderdesktasks/tasks.backstage.go
gen.go
go.mod
handler.go
handler_test.go
main.go
proto/backstage/v1/options.proto
proto/orderdesk/v1/orderdesk_tasks.proto
`
	if diff := cmp.Diff(want, listing(t, dir)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, words := range [][]string{{"generate", "-check"}, {"vet", "-strict"}} {
		if got := backstage(t, dir, words...); got.Code != exitOK {
			t.Errorf("%v: %+v", words, got)
		}
	}
}

func TestAProjectFromACheckoutUsesTheCheckout(t *testing.T) {
	t.Parallel()
	mod := content(t, began(t), "go.mod")
	for _, want := range []string{
		"module example.com/orderdesk\n",
		"tool github.com/backstage-go/backstage/cmd/backstage\n",
		"replace github.com/backstage-go/backstage => " + root(t) + "\n",
	} {
		if !strings.Contains(mod, want) {
			t.Errorf("go.mod has no %q:\n%s", want, mod)
		}
	}
}

func TestInitNeverOverwrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine := map[string]string{
		"go.mod":     "module example.com/mine\n\ngo 1.25.0\n",
		"handler.go": "package main\n",
		"buf.yaml":   "version: v2\nmodules:\n  - path: proto\n",
	}
	for name, text := range mine {
		put(t, dir, name, text)
	}
	got := backstage(t, dir, "init", "-name", "shop")
	if got.Code != exitFailed || !strings.Contains(got.Stderr, "nothing is written") || !strings.Contains(got.Stderr, "handler.go") {
		t.Errorf("a file in the way: %+v", got)
	}
	if want := "buf.yaml\ngo.mod\nhandler.go\n"; listing(t, dir) != want {
		t.Errorf("something was written:\n%s", listing(t, dir))
	}

	if err := os.Remove(filepath.Join(dir, "handler.go")); err != nil {
		t.Fatal(err)
	}
	got = backstage(t, dir, "init", "-name", "shop")
	if got.Code != exitOK || !strings.Contains(got.Stdout, "kept  buf.yaml, which needs a module with path: proto\n") {
		t.Errorf("a file that may stay: %+v", got)
	}
	if content(t, dir, "buf.yaml") != mine["buf.yaml"] {
		t.Errorf("buf.yaml was overwritten:\n%s", content(t, dir, "buf.yaml"))
	}
	if mod := content(t, dir, "go.mod"); !strings.HasPrefix(mod, mine["go.mod"]) || !strings.Contains(mod, "\ntool ") {
		t.Errorf("go.mod of the existing module:\n%s", mod)
	}
	if !strings.Contains(got.Stdout, "go mod tidy") {
		t.Errorf("fetching is left to the user, and not said:\n%s", got.Stdout)
	}
}

func TestInitInAFolderOfAModule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "go.mod", "module example.com/mine\n\ngo 1.25.0\n")
	put(t, dir, "lib.go", "package lib\n")
	got := backstage(t, dir, "init", "-name", "shop")
	if got.Code != exitFailed || !strings.Contains(got.Stderr, "lib.go is of package lib") ||
		!strings.Contains(got.Stderr, "backstage init "+filepath.Join("cmd", "shop")+"\n") {
		t.Errorf("where there is a package already: %+v", got)
	}
	put(t, dir, "cmd/reports/lib/lib.go", "package lib\n")
	put(t, dir, "cmd/lib/lib.go", "package lib\n")
	got = backstage(t, dir, "init", "cmd/reports/lib")
	if want := "backstage init " + filepath.Join("cmd", "lib2") + "\n"; got.Code != exitFailed || !strings.Contains(got.Stderr, want) {
		t.Errorf("another folder is to be one of the module's commands that is free: %+v, want %q", got, want)
	}
	got = backstage(t, dir, "init", "cmd/reports")
	if got.Code != exitOK {
		t.Fatalf("in a folder of its own: %+v", got)
	}
	schema := content(t, dir, "cmd/reports/proto/reports/v1/reports_tasks.proto")
	if !strings.Contains(schema, `"example.com/mine/cmd/reports/gen/reports/v1;reportsv1"`) {
		t.Errorf("go_package is not that of the folder:\n%s", schema)
	}
	if check := backstage(t, dir, "generate", "-check"); check.Code != exitOK {
		t.Errorf("from the module's root: %+v", check)
	}
}

func TestInitRefusesWhatItCannotName(t *testing.T) {
	t.Parallel()
	inside := plain("init", "-C", ".", "demo")
	if inside.Code != exitUsage || !strings.Contains(inside.Stderr, "-module example.com/shop") {
		t.Errorf("in Backstage's own module: %+v", inside)
	}
	dir := t.TempDir()
	put(t, dir, "go.mod", "module example.com/mine\n")
	other := backstage(t, dir, "init", "-name", "shop", "-module", "example.com/other")
	if other.Code != exitUsage || !strings.Contains(other.Stderr, "module example.com/mine already") {
		t.Errorf("another module's folder: %+v", other)
	}
	if got := backstage(t, t.TempDir(), "init", "-name", "shop", "-replace", dir); got.Code != exitUsage ||
		!strings.Contains(got.Stderr, "is module example.com/mine, not github.com/backstage-go/backstage") {
		t.Errorf("a checkout of something else: %+v", got)
	}
}

func TestInitSaysCdAsAShellReadsIt(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"shop":      "cd shop\n",
		"my shop":   "cd 'my shop'\n",
		"$(shop)":   "cd '$(shop)'\n",
		"it's shop": `cd 'it'\''s shop'` + "\n",
	} {
		got := backstage(t, t.TempDir(), "init", "-tidy=false", "-name", "shop", name)
		if got.Code != exitOK || !strings.Contains(got.Stdout, want) {
			t.Errorf("init %q: %+v, want %q", name, got, want)
		}
	}
}
