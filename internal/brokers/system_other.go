//go:build !unix

package brokers

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
)

// mine trusts the system, whose folder for temporary files is the user's own.
func mine(fs.FileInfo) bool { return true }

func apart(*exec.Cmd) {}

func killAll(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil // it has ended
	}
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// terminateAll kills: there is no softer way here.
func terminateAll(pid int) error { return killAll(pid) }

func pauseAll(int) error { return errors.ErrUnsupported }

func resumeAll(int) error { return errors.ErrUnsupported }

func exitCode(state *os.ProcessState) int { return state.ExitCode() }
