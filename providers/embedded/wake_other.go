//go:build !linux

package embedded

func newWaker(*sideFile) (waker, error) { return poller{}, nil }
