package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// crew is the processes of a demo: the shop's own program, with other commands.
type crew struct {
	place *place
	ended chan end
	wait  sync.WaitGroup
}

// end says that a process has ended.
type end struct {
	name string
	err  error
}

// start starts a command of the shop, which is interrupted when ctx ends. What it
// says is in the file NAME.log in the data folder.
func (c *crew) start(ctx context.Context, name, command string, args ...string) (*os.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(c.place.data, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	cmd := exec.CommandContext(ctx, self, append([]string{command}, args...)...)
	// An address may have a password, which a command line shows to everybody.
	cmd.Env = append(os.Environ(), "BACKSTAGE_URL="+c.place.url, "SHOP_DATA="+c.place.data)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = 30 * time.Second
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return cmd.Process.Kill() // not every system can interrupt
		}
		return nil
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c.wait.Go(func() {
		err := cmd.Wait()
		select {
		case c.ended <- end{name, err}:
		case <-ctx.Done():
		}
	})
	return cmd.Process, nil
}
