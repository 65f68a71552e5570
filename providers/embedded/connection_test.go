package embedded

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// openConnection opens a file with two rows, one of them of nulls.
func openConnection(t *testing.T) *connection {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.db")
	c, err := connect(path, dsn(path, internals{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	if err := c.script(t.Context(), `create table r (n integer, yes integer, s text, b blob);
insert into r values (7, 1, 'text', x'0102'), (null, null, null, null), (8, 0, '', x'')`); err != nil {
		t.Fatal(err)
	}
	return c
}

type scanned struct {
	N   int64
	Yes bool
	S   string
	B   []byte
}

func TestRowsAreScannedAndKept(t *testing.T) {
	t.Parallel()
	c := openConnection(t)
	var all []scanned
	var nulls []bool
	read := func(most int) error {
		return c.query(t.Context(), "select n, yes, s, b from r order by rowid", nil, func(r row) error {
			var one scanned
			err := r.scan(&one.N, &one.Yes, &one.S, &one.B)
			all, nulls = append(all, one), append(nulls, r[3] == nil)
			if err == nil && len(all) == most {
				return errEnough
			}
			return err
		})
	}
	if err := read(10); err != nil {
		t.Fatal(err)
	}
	want := []scanned{{7, true, "text", []byte{1, 2}}, {}, {8, false, "", nil}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]bool{false, true, false}, nulls); diff != "" {
		t.Errorf("whose bytes are null, which empty ones are not (-want +got):\n%s", diff)
	}
	all = nil
	if err := read(1); err != nil || len(all) != 1 {
		t.Errorf("a query that had enough: %d rows, %v; want 1", len(all), err)
	}
	// A statement that was left is as good as new.
	if changed, err := c.exec(t.Context(), "delete from r where n >= ?", 7); err != nil || changed != 2 {
		t.Errorf("deleted %d, %v; want 2", changed, err)
	}
}

func TestQueriesThatFail(t *testing.T) {
	t.Parallel()
	c := openConnection(t)
	var wrong string
	if _, err := c.row(t.Context(), "select n from r", nil, &wrong); err == nil {
		t.Errorf("a number was scanned into a string: %q", wrong)
	}
	if _, err := c.exec(t.Context(), "delete from nothing"); primary(err) != 1 {
		t.Errorf("a statement that is wrong: %v; want code 1", err)
	}
	if found, err := c.row(t.Context(), "select n from r where n = ?", []any{99}); err != nil || found {
		t.Errorf("found %v, %v; want nothing", found, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.script(ctx, "delete from r"); err == nil {
		t.Error("a script ran though its context had ended")
	}
}
