package embedded

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// TestHeldJobsAreFoundByIndex keeps promoters from reading all that is held, or all of
// a key.
func TestHeldJobsAreFoundByIndex(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{})
	for query, index := range map[string]string{
		sqlDue: "held_due", sqlNextDue: "held_due", sqlDueLater: "held_due",
		sqlFirst: "held_first", sqlSoonest: "held_key",
	} {
		plan := ""
		args := []any{1, 2, 3}[:strings.Count(query, "?")]
		if err := s.readRows(t.Context(), "explain query plan "+query, args, func(rows *sql.Rows) error {
			var id, parent, unused int
			var detail string
			err := rows.Scan(&id, &parent, &unused, &detail)
			plan += detail + "\n"
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan, index) || strings.Contains(plan, "B-TREE") {
			t.Errorf("the plan of %s is\n%s\nwant it to use %s, and to sort nothing", query, plan, index)
		}
	}
}

// TestHeldJobsOfAKeyTakeTurns changes who is due first of a key.
func TestHeldJobsOfAKeyTakeTurns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(t *testing.T, d *delays) // with late held for two hours, later for three
		want string
	}{
		"as they came": {func(*testing.T, *delays) {}, "late later"},
		"an earlier one comes": {func(t *testing.T, d *delays) {
			mustHold(t, d, job("early", keyed("k"), delayed(time.Hour)))
		}, "early late later"},
		"one between": {func(t *testing.T, d *delays) {
			mustHold(t, d, job("between", keyed("k"), delayed(150*time.Minute)))
		}, "late between later"},
		"the first is cancelled": {func(t *testing.T, d *delays) {
			if found, err := d.Cancel(t.Context(), "late"); err != nil || len(found) != 1 {
				t.Fatalf("cancelling: %v, %v", found, err)
			}
		}, "later"},
		"one behind is cancelled": {func(t *testing.T, d *delays) {
			if found, err := d.Cancel(t.Context(), "later"); err != nil || len(found) != 1 {
				t.Fatalf("cancelling: %v, %v", found, err)
			}
		}, "late"},
		"the first is held anew": {func(t *testing.T, d *delays) {
			mustHold(t, d, job("late", keyed("k"), delayed(4*time.Hour)))
		}, "later late"},
		"one behind is held anew": {func(t *testing.T, d *delays) {
			mustHold(t, d, job("later", keyed("k"), delayed(time.Hour)))
		}, "later late"},
		"the first changes its key": {func(t *testing.T, d *delays) {
			mustHold(t, d, job("late", keyed("other"), delayed(4*time.Hour)))
		}, "later late"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var later atomic.Int64
			now := func() int64 { return time.Now().UnixNano() + later.Load() }
			s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Config{}, internals{now: now})
			lent, _ := s.provider.Lend("b")
			d := lent.(*delays)
			mustHold(t, d, job("late", keyed("k"), delayed(2*time.Hour)), job("later", keyed("k"), delayed(3*time.Hour)))
			c.then(t, d)
			later.Store(int64(10 * time.Hour))
			var order []string
			for {
				r, err := d.reserve(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(r.jobs) == 0 {
					break
				}
				stored := make([]provider.Stored, len(r.jobs))
				for i, j := range r.jobs {
					order = append(order, j.ID)
					stored[i].Outcome = provider.OutcomeStored
				}
				if err := d.conclude(t.Context(), r, stored); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(order, " "); got != c.want {
				t.Errorf("promoted %q; want %q", got, c.want)
			}
		})
	}
}

// TestRetriesGoBackToTheirPlace has a promoter with a publish of its own for the
// file's own jobs: a retry that kept its place in its key is not published, for it
// would come behind the others of its key.
func TestRetriesGoBackToTheirPlace(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{})
	sub := subscribe(t, s)
	publish(t, s, job("first", keyed("k")), job("second", keyed("k")), job("held", keyed("k"), delayed(10*time.Millisecond)))
	if err := mustReceive(t, sub, 1)[0].Retry(t.Context(), provider.Again{Why: provider.FailedAgain, After: 10 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	published := make(chan string, 10)
	promoteWhile(t, s.provider.Delays, func(ctx context.Context, jobs []provider.Job) []provider.Stored {
		for _, j := range jobs {
			published <- j.ID
		}
		return s.Publish(ctx, jobs, provider.PublishOptions{Accepted: true})
	})
	if id := <-published; id != "held" {
		t.Errorf("%s was published; want the one that never waited", id)
	}
	for _, want := range []string{"first", "second", "held"} {
		got := mustReceive(t, sub, 1)[0]
		if got.Job().ID != want {
			t.Errorf("received %s; want %s", got.Job().ID, want)
		}
		ack(t, got)
	}
	wantStats(t, s, "q", 0, 0, 0, 0)
}

func mustHold(t *testing.T, d *delays, jobs ...provider.Job) {
	t.Helper()
	for _, r := range d.Hold(t.Context(), jobs) {
		if r.Outcome != provider.OutcomeStored {
			t.Fatalf("holding %s: %v, %v", r.ID, r.Outcome, r.Err)
		}
	}
}
