//go:build unix

package brokers

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// mine says that a file belongs to this user.
func mine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// apart starts a command in a session of its own: a Ctrl-C in the terminal is the
// business of whoever started it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// Signals go to a server and all that it started, which is a group with its number.

func killAll(pid int) error   { return signalAll(pid, syscall.SIGKILL) }
func pauseAll(pid int) error  { return signalAll(pid, syscall.SIGSTOP) }
func resumeAll(pid int) error { return signalAll(pid, syscall.SIGCONT) }

// terminateAll reaches paused processes too.
func terminateAll(pid int) error {
	return errors.Join(signalAll(pid, syscall.SIGTERM), signalAll(pid, syscall.SIGCONT))
}

func signalAll(pid int, signal syscall.Signal) error {
	if err := syscall.Kill(-pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// exitCode is the code of a process that has ended, as a shell would give it.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
