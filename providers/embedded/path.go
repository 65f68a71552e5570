package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	lockSuffix = "-lock"
	// header is how a file of SQLite begins.
	header = "SQLite format 3\x00"
)

// checkedPath returns a path in full, or why there can be no file of jobs. It runs
// before anything is written, so that a wrong path leaves nothing beside it.
func checkedPath(path string) (string, error) {
	switch path {
	case "":
		return "", setupError("no path is given", "name a file, or use the provider memory for jobs that need not last")
	case ":memory:":
		return "", setupError("it keeps its jobs in a file, and "+path+" is none", "name a file, or use the provider memory")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("embedded file: %w", err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, nil
	case err != nil:
		return "", setupError("cannot look at "+path+" ("+err.Error()+")", "check the path, and who may read its folders")
	case info.IsDir():
		return "", setupError(path+" is a folder", "name a file in it, for example "+filepath.Join(path, "jobs.db"))
	case !info.Mode().IsRegular():
		return "", setupError(path+" is a device and cannot keep jobs", "name a file, or use the provider memory for jobs that need not last")
	case info.Size() > 0 && !isOurs(path):
		return "", setupError("the file "+path+" is not a SQLite file, and was left alone", "choose another path; if it once was one, restore a backup")
	}
	return path, nil
}

// isOurs reports whether a file may be one of ours. One that has a lock file is not
// looked into: it may be open in this process, and to close it would drop SQLite's
// locks.
func isOurs(path string) bool {
	if _, err := os.Stat(path + lockSuffix); err == nil {
		return true
	}
	file, err := os.Open(path)
	if err != nil {
		return true // opening it says why
	}
	defer file.Close()
	begins := make([]byte, len(header))
	_, err = io.ReadFull(file, begins)
	return err == nil && string(begins) == header
}
