package embedded

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
	"github.com/backstage-go/backstage/runtime/provider/providertest"
)

// TestMain lets the suite, and this package's own tests, start the test binary as
// another process.
func TestMain(m *testing.M) {
	if plan := os.Getenv(childVariable); plan != "" {
		child(plan)
		return
	}
	providertest.Main(m, openForSuite)
}

func TestProvider(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real leases")
	}
	providertest.Run(t, func(t *testing.T) providertest.Harness {
		path, lender := filepath.Join(t.TempDir(), "jobs.db"), filepath.Join(t.TempDir(), "lender.db")
		return providertest.Harness{
			Open:   func() (*provider.Provider, error) { return openForSuite(path) },
			Lender: func() (*provider.Provider, error) { return openForSuite(lender) },
			Lease:  500 * time.Millisecond,

			Address:       path,
			LenderAddress: lender,
			Bound:         func(queue string, n int) error { return bindQueue(path, queue, n) },
			Garbage: func(queue string, b []byte) error {
				return putBytes(path, queue, b)
			},
		}
	})
}

func openForSuite(path string) (*provider.Provider, error) {
	// Long enough to publish all that one reservation has on a busy machine: a
	// promoter that is late is another's to follow, and its jobs run twice.
	return Open(path, Config{PromotionLease: 5 * time.Second, OpenWait: time.Minute})
}

func bindQueue(path, queue string, n int) error {
	p, err := Open(path, Config{Bounds: map[string]int{queue: n}, OpenWait: time.Minute})
	if err != nil {
		return err
	}
	return p.Close(context.Background())
}

// putBytes does what no provider does: it writes to the file behind its back.
func putBytes(path, queue string, b []byte) error {
	db, err := sql.Open("sqlite", dsn(path, internals{}, "busy_timeout(5000)"))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(`
begin immediate;
insert into job (n, q, key, body) select (select depth + 1 from queue where q = 1), q, 0, ?2 from queue where scope = 0 and name = ?1;
insert into ready (q, pos, n) select q, (select depth + 1 from queue where q = 1), (select depth + 1 from queue where q = 1)
	from queue where scope = 0 and name = ?1;
update queue set depth = depth + 1 where q = 1 or scope = 0 and name = ?1;
commit`, queue, b)
	return err
}
