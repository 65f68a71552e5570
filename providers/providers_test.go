package providers_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/providers"
)

func TestOpenByAddress(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "jobs.db")
	for address, name := range map[string]string{
		"memory:":              "memory",
		"memory:?bound.mail=4": "memory",
		"embedded:" + file:     "embedded",
		"embedded:" + file + "?synchronous=normal&bound.mail=4": "embedded",
	} {
		p, err := providers.Open(t.Context(), address)
		if err != nil {
			t.Errorf("Open(%q): %v", address, err)
			continue
		}
		if p.Name != name {
			t.Errorf("Open(%q) opens %q, want %q", address, p.Name, name)
		}
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("Open(%q): close: %v", address, err)
		}
	}
}

func TestAnAddressThatIsNotUnderstoodIsAnError(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"jobs.db":                       "no scheme",
		"mysql:host":                    `unknown scheme "mysql"`,
		"embedded:":                     "names no file",
		"embedded:x.db?synchronous=off": "full or normal",
		"embedded:x.db?sync=full":       `unknown setting "sync"`,
		"memory:?bound.mail=many":       "a number of jobs",
		"embedded:x.db?bound.mail=%zz":  "invalid URL escape",
	} {
		if _, err := providers.Open(t.Context(), address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): err = %v, want one that says %q", address, err, want)
		}
	}
}
