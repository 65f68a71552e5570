package embedded

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBackupLeavesOthersAlone has somebody take the name while the copy is made.
func TestBackupLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	made, to := filepath.Join(folder, "made"), filepath.Join(folder, "to")
	for file, text := range map[string]string{made: "copy", to: "another's"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := place(made, to); err == nil {
		t.Error("a copy was put over another's file")
	}
	if b, err := os.ReadFile(to); err != nil || string(b) != "another's" {
		t.Errorf("the other's file: %q, %v", b, err)
	}
}

// TestBackupThatFails leaves nothing behind.
func TestBackupThatFails(t *testing.T) {
	t.Parallel()
	path, folder := filepath.Join(t.TempDir(), "jobs.db"), t.TempDir()
	if err := os.WriteFile(path, []byte("no database at all, but long enough to be looked at"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Backup(t.Context(), path, filepath.Join(folder, "copy.db")); err == nil {
		t.Error("a file that is no database was copied")
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v; want nothing", left, err)
	}
	if err := Backup(t.Context(), path, filepath.Join(folder, "no", "such", "copy.db")); err == nil {
		t.Error("a copy was made in a folder that is not there")
	}
}
