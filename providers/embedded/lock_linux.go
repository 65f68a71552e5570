package embedded

import (
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// On Linux the locks are open-file-description locks on single bytes.

func (f *sideFile) lock(kind int16, at int64) error {
	for {
		lock := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: at, Len: 1}
		err := unix.FcntlFlock(f.file.Fd(), unix.F_OFD_SETLK, &lock)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// try locks a byte for itself, if it is free.
func (f *sideFile) try(at int64) (bool, error) {
	err := f.lock(unix.F_WRLCK, at)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// share locks a byte together with others.
func (f *sideFile) share(at int64) error { return f.lock(unix.F_RDLCK, at) }

// release unlocks a byte.
func (f *sideFile) release(at int64) error { return f.lock(unix.F_UNLCK, at) }

// alone reports whether nobody else has the file open.
func (f *sideFile) alone() bool {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: bytePresent, Len: 1}
	err := unix.FcntlFlock(f.file.Fd(), unix.F_OFD_GETLK, &lock)
	return err == nil && lock.Type == unix.F_UNLCK
}

func nap(d time.Duration) {
	interval := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&interval, nil)
}
