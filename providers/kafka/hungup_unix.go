//go:build linux || darwin || freebsd || netbsd || openbsd

package kafka

import (
	"errors"
	"net"
	"syscall"
)

// hungUp reports whether the other side has closed a connection, as far as this machine
// has heard.
func hungUp(conn net.Conn) (is bool) {
	of, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := of.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		waits := errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
		is = n <= 0 && !waits
		return true
	})
	return is
}
