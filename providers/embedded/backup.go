package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Backup writes a copy of the file at path to a new file, while any number of
// processes work on it: one moment of it, whole and compact. The file at to must
// not exist, and does not until the copy is whole: it is made in a folder beside it,
// which is removed again. (Where a file cannot have two names, an empty file stands for
// it in the last moment, and stays if the process dies then.) See the package's documentation for what runs again after
// a copy is put in place.
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
	if to, err = filepath.Abs(to); err != nil {
		return fmt.Errorf("embedded file: %w", err)
	}
	if _, err := os.Lstat(to); err == nil {
		return errExists(to)
	}
	folder, err := os.MkdirTemp(filepath.Dir(to), ".backup-*")
	if err != nil {
		return setupError("a copy cannot be made beside "+to+" ("+err.Error()+")", "check that its folder exists and can be written")
	}
	defer os.RemoveAll(folder)
	made := filepath.Join(folder, "copy.db")
	if err := vacuumInto(ctx, path, made); err != nil {
		return fault(path, err)
	}
	return place(made, to)
}

func vacuumInto(ctx context.Context, path, to string) error {
	db, err := sql.Open("sqlite", dsn(path, internals{}, "busy_timeout(5000)"))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, "vacuum into ?", to)
	return err
}

// place gives a file its name, unless another file has it by now.
func place(made, to string) error {
	err := os.Link(made, to)
	if err == nil {
		return nil
	}
	// The name exists, or the file system has no links: then an empty file of ours
	// takes the name first.
	mine, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errExists(to)
	case err != nil:
		return fmt.Errorf("embedded file: %w", err)
	}
	_ = mine.Close()
	if err := os.Rename(made, to); err != nil {
		_ = os.Remove(to) // it is ours, and empty
		return fmt.Errorf("embedded file: %w", err)
	}
	return nil
}

func errExists(to string) error { return setupError("the file "+to+" exists", "name a new one") }
