package embedded

import (
	"fmt"
	"os"
	"time"
)

// The side file is what processes that share a file coordinate by. SQLite's own
// write lock is taken by whoever tries at the right moment; waiting for it is
// unfair, up to seconds. So a writer first locks a byte here. Before that it locks
// the door: who has written and wants to write again finds the door locked by who
// has been waiting, and waits in turn.
//
// The locks belong to the open file, not to the process, so that two openings
// within one process keep each other out as well.
type sideFile struct {
	file *os.File
	path string
}

// The bytes of the side file that are locked.
const (
	byteWrite   = 1 // locked by who writes
	byteDoor    = 2 // locked by who is next
	bytePresent = 3 // shared by all who have the file open
)

const (
	// doorPatience bounds how long a stopped process that was next keeps the
	// others waiting for nothing.
	doorPatience = 50 * time.Millisecond
	// doorDisuse is for how long the door is then left aside.
	doorDisuse = time.Second
)

func openSideFile(path string) (*sideFile, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, setupError("cannot open the lock file "+path+" ("+err.Error()+")",
			"check that the folder exists and can be written")
	}
	side := &sideFile{file: file, path: path}
	if err := side.share(bytePresent); err != nil {
		_ = file.Close()
		return nil, setupError(fmt.Sprintf("the file system of %s gives no locks (%v)", path, err),
			"use a local disk, not a network share")
	}
	return side, nil
}

// close drops all locks.
func (f *sideFile) close() { _ = f.file.Close() }

// turnstile is one process's way to the write lock.
type turnstile struct {
	side      *sideFile
	door      bool      // locked by us
	doorAside time.Time // until when the door is not used
}

// tryEnter takes the write lock, or the door and then the write lock, as far as it
// can now. It reports whether it has the write lock.
func (t *turnstile) tryEnter(now, since time.Time) (bool, error) {
	if !t.door && now.After(t.doorAside) {
		got, err := t.side.try(byteDoor)
		if err != nil {
			return false, err
		}
		t.door = got
		if !got {
			if now.Sub(since) < doorPatience {
				return false, nil
			}
			t.doorAside = now.Add(doorDisuse)
		}
	}
	return t.side.try(byteWrite)
}

// enter waits for the write lock until stop is closed. waited is called while it
// waits.
func (t *turnstile) enter(stop <-chan struct{}, waited func(time.Duration)) error {
	since := time.Now()
	now := since
	defer t.leaveDoor()
	for {
		got, err := t.tryEnter(now, since)
		if got || err != nil {
			return err
		}
		now = time.Now()
		waited(now.Sub(since))
		if err := pause(now.Sub(since), stop); err != nil {
			return err
		}
	}
}

// leaveDoor lets the next one wait at the door.
func (t *turnstile) leaveDoor() {
	if t.door {
		_ = t.side.release(byteDoor)
		t.door = false
	}
}

// leave gives the write lock up.
func (t *turnstile) leave() { _ = t.side.release(byteWrite) }

// pause sleeps a little, longer the longer the wait has been. The first sleeps are
// shorter than Go's timers can do where the system allows it, because that is
// what the next writer waits for.
func pause(waited time.Duration, stop <-chan struct{}) error {
	select {
	case <-stop:
		return errStopped
	default:
	}
	switch {
	case waited < 20*time.Millisecond:
		nap(100 * time.Microsecond)
	case waited < 200*time.Millisecond:
		nap(500 * time.Microsecond)
	default:
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}
