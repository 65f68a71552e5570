//go:build unix

package providertest

import "syscall"

// canStop says that this system can stop a process and let it go on.
const canStop = true

// freeze stops the process, all its threads at once.
func (p *process) freeze() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// thaw lets it go on.
func (p *process) thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
