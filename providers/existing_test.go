package providers_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/providers"
	"github.com/backstage-go/backstage/runtime/provider"
)

func TestOpenExistingMakesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "jobs.db")
	for address, want := range map[string]string{
		"embedded:" + file:                         "there is no file " + file,
		"embedded://" + file + "?bound.mail=4":     "there is no file " + file,
		"embedded:" + filepath.Join(dir, "x", "y"): "there is no file",
		"embedded:": "names no file",
		"memory:":   "no other can look into it",
		"mysql:x":   `unknown scheme "mysql"`,
	} {
		if _, err := providers.OpenExisting(t.Context(), address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("OpenExisting(%q): %v, want an error that says %q", address, err, want)
		}
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("it made %v (%v)", made, err)
	}
	for _, open := range []func(context.Context, string) (*provider.Provider, error){providers.Open, providers.OpenExisting} {
		p, err := open(t.Context(), "embedded:"+file)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
