package embedded

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/backstage-go/backstage/runtime/provider"
)

func TestWhatOpeningFoundIsTold(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Config{}, internals{noWaker: errors.New("no inotify")})
	first, second := observe(s), observe(s)
	if kinds := first.kinds(); len(kinds) != 1 || kinds[0] != provider.Degraded {
		t.Errorf("the first observer saw %v; want degraded", kinds)
	}
	if kinds := second.kinds(); len(kinds) != 0 {
		t.Errorf("the second observer saw %v; want nothing", kinds)
	}
}

// TestGhostsAreToldOnRecord removes places without a job in a transaction that
// fails, and then in one that does not.
func TestGhostsAreToldOnRecord(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{})
	events := observe(s)
	publish(t, s, job("ghost"))
	if err := s.do(t.Context(), func(t *transaction) error { t.exec("delete from job"); return nil }); err != nil {
		t.Fatal(err)
	}
	sub := subscribe(t, s)
	r := newReception(sub, []int64{sub.lanes["q"]}, 1)
	for _, fails := range []bool{true, false} {
		err := s.do(t.Context(), func(t *transaction) error {
			r.stage(t)
			if fails {
				t.exec("insert into scope (name) values (null)")
			}
			return nil
		})
		if (err != nil) != fails {
			t.Fatal(err)
		}
		if kinds := events.kinds(); fails && len(kinds) != 0 || !fails && len(kinds) != 1 {
			t.Errorf("the transaction failed: %v; events: %v; want one if it is on record", fails, kinds)
		}
	}
}
