package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
)

// Backup writes a copy of the file at path to a new file, while any number of
// processes work on it: one moment of it, whole and compact. The file at to must
// not exist; if Backup fails, what it has begun there is removed. See the
// package's documentation for what runs again after a copy is put in place.
//
// It reads the file as one long transaction, for which the write-ahead log has to
// keep what is written meanwhile.
func Backup(ctx context.Context, path, to string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("embedded file: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return setupError("there is no file "+path, "check the path")
	}
	if _, err := os.Stat(to); err == nil {
		return setupError("the file "+to+" exists", "name a new one")
	}
	db, err := sql.Open("sqlite", dsn(path, internals{}, "busy_timeout(5000)"))
	if err != nil {
		return fault(path, err, false)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "vacuum into ?", to); err != nil {
		_ = os.Remove(to)
		return fault(path, err, false)
	}
	return nil
}
