package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/runtime/provider"
)

// TestWrongPathsAreRefused with a sentence that fits, and nothing is left beside
// them.
func TestWrongPathsAreRefused(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "go.mod")
	if err := os.WriteFile(text, []byte("module example.com/shop\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":           "no path is given",
		":memory:":   "provider memory",
		os.DevNull:   "device",
		folder:       "is a folder",
		text:         "not a SQLite file",
		text + "/db": "cannot",
	} {
		_, err := Open(path, Config{})
		var setup *provider.SetupError
		if !errors.As(err, &setup) || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): %v, want a SetupError with %q", path, err, want)
		}
		if _, err := os.Stat(path + lockSuffix); path != "" && err == nil {
			t.Errorf("Open(%q) left a lock file", path)
		}
	}
}
