package embedded

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// notifier wakes by a byte written to the side file, of which inotify tells. (The
// write-ahead log would tell too, but before the transaction can be seen.)
type notifier struct {
	side   *sideFile
	events *os.File
	pokes  chan struct{}
	ended  chan struct{}
}

func newWaker(side *sideFile) (waker, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	if _, err := unix.InotifyAddWatch(fd, side.path, unix.IN_MODIFY); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("inotify: %w", err)
	}
	n := &notifier{
		side:   side,
		events: os.NewFile(uintptr(fd), "inotify"),
		pokes:  make(chan struct{}, 1),
		ended:  make(chan struct{}),
	}
	go n.run()
	return n, nil
}

// run ends when close closes the events.
func (n *notifier) run() {
	defer close(n.ended)
	buffer := make([]byte, 4096)
	for {
		if _, err := n.events.Read(buffer); err != nil {
			return
		}
		select {
		case n.pokes <- struct{}{}:
		default:
		}
	}
}

func (n *notifier) poked() <-chan struct{} { return n.pokes }

// wake costs several microseconds and wakes the writer itself too, so it is done
// only if somebody else is there.
func (n *notifier) wake() {
	if !n.side.alone() {
		_, _ = n.side.file.WriteAt([]byte{1}, 0)
	}
}

func (n *notifier) interval() time.Duration { return 0 }

func (n *notifier) close() {
	_ = n.events.Close()
	<-n.ended
}
