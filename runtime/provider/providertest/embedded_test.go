package providertest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/embedded"
	"github.com/backstage-go/backstage/runtime/provider"
)

func TestMain(m *testing.M) { Main(m, openMutant) }

func openFile(path string) (*provider.Provider, error) {
	return embedded.Open(path, embedded.Config{OpenWait: time.Minute}) // a disk may be busy
}

// TestKill runs the checks that kill processes, on a provider whose storage
// outlives them and that needs no server.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real leases")
	}
	t.Parallel()
	run(t, killChecks(), func(t *testing.T) Harness { return inFile(t, "") })
}

// TestKillWithoutRetries runs the one that needs a provider which cannot retry by
// itself.
func TestKillWithoutRetries(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real leases")
	}
	t.Parallel()
	run(t, named(t, "kill/retry held"), func(t *testing.T) Harness { return inFile(t, "no retries") })
}

// inFile is a harness whose processes open a mutant.
func inFile(t *testing.T, mutant string) Harness {
	path, lender := filepath.Join(t.TempDir(), "jobs.db"), filepath.Join(t.TempDir(), "lender.db")
	return Harness{
		Open: func() (*provider.Provider, error) {
			p, err := openFile(path)
			if err == nil && strings.HasPrefix(mutant, "no retries") {
				wrap(p, &hooks{facts: noRetries})
			}
			return p, err
		},
		Lender:        func() (*provider.Provider, error) { return openFile(lender) },
		Lease:         time.Second,
		Address:       mutant + "|" + path,
		LenderAddress: mutant + "|" + lender,
	}
}

// named returns the check with a name.
func named(t *testing.T, name string) []check {
	t.Helper()
	all := checks()
	i := slices.IndexFunc(all, func(c check) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("there is no check %q", name)
	}
	return all[i : i+1]
}
