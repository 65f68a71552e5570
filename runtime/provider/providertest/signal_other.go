//go:build !unix

package providertest

import "errors"

// canStop says that this system can stop a process and let it go on.
const canStop = false

func (p *process) freeze() error { return errors.ErrUnsupported }

func (p *process) thaw() error { return errors.ErrUnsupported }
