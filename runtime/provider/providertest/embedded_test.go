package providertest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/embedded"
	"github.com/backstage-go/backstage/runtime/provider"
)

func TestMain(m *testing.M) { Main(m, openFile) }

func openFile(path string) (*provider.Provider, error) {
	return embedded.Open(path, embedded.Config{})
}

// TestKill runs the checks that kill processes, on a provider whose storage
// outlives them and that needs no server.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real leases")
	}
	run(t, killChecks(), func(t *testing.T) Harness {
		dir := t.TempDir()
		path, lender := filepath.Join(dir, "jobs.db"), filepath.Join(dir, "lender.db")
		return Harness{
			Open:          func() (*provider.Provider, error) { return openFile(path) },
			Lender:        func() (*provider.Provider, error) { return openFile(lender) },
			Lease:         time.Second,
			Address:       path,
			LenderAddress: lender,
		}
	})
}
