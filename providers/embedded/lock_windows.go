package embedded

import (
	"errors"
	"time"

	"golang.org/x/sys/windows"
)

// On Windows the locks are LockFileEx's on single bytes.

func (f *sideFile) lock(flags uint32, at int64) error {
	return windows.LockFileEx(windows.Handle(f.file.Fd()), flags|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{Offset: uint32(at)})
}

// try locks a byte for itself, if it is free.
func (f *sideFile) try(at int64) (bool, error) {
	err := f.lock(windows.LOCKFILE_EXCLUSIVE_LOCK, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// share locks a byte together with others.
func (f *sideFile) share(at int64) error { return f.lock(0, at) }

// release unlocks a byte.
func (f *sideFile) release(at int64) error {
	return windows.UnlockFileEx(windows.Handle(f.file.Fd()), 0, 1, 0, &windows.Overlapped{Offset: uint32(at)})
}

func nap(d time.Duration) { time.Sleep(d) }
