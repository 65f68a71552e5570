//go:build unix && !linux && !aix && !solaris

package embedded

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Here a lock belongs to the whole open file, so there is only the one for
// writing: no door, hence no turns.

// try takes the lock for writing, if it is free.
func (f *sideFile) try(at int64) (bool, error) {
	if at != byteWrite {
		return true, nil
	}
	err := unix.Flock(int(f.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}

// share takes part in nothing here.
func (f *sideFile) share(int64) error { return nil }

// release gives the lock for writing up.
func (f *sideFile) release(at int64) error {
	if at != byteWrite {
		return nil
	}
	return unix.Flock(int(f.file.Fd()), unix.LOCK_UN)
}

func nap(d time.Duration) { time.Sleep(d) }
