package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/backstage-go/backstage/examples/quickstart/gen/quickstart/v1/ordertasks"
	"github.com/backstage-go/backstage/providers/embedded"
	"github.com/backstage-go/backstage/runtime"
)

// lease is short here, so that the demo does not wait long for a dead worker's
// jobs. The default is 30 seconds.
const lease = 3 * time.Second

// work is the worker process: it runs jobs until its parent closes its standard
// input, or dies.
func work(ctx context.Context, dir, dieAfter string) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent does
		stop()
	}()
	ledger, err := openLedger(ctx, ledgerFile(dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.close()) }()
	p, err := embedded.Open(queueFile(dir), embedded.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close(context.WithoutCancel(ctx))) }()

	worker, err := backstage.NewWorker(p, backstage.WorkerConfig{
		Lease:  lease,
		Logger: slog.New(slog.DiscardHandler), // the demo prints its own table
	})
	if err != nil {
		return err
	}
	ordertasks.Register(worker, &shop{ledger: ledger, dieAfter: dieAfter})
	return worker.Run(ctx)
}

// workerProcess is a worker in a process of its own.
type workerProcess struct {
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan error // receives once, when it has ended
}

func startWorker(dir, dieAfter string) (*workerProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-worker", "-dir", dir, "-die-after", dieAfter)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &workerProcess{cmd: cmd, stdin: stdin, done: make(chan error, 1)}
	go func() { p.done <- cmd.Wait() }()
	return p, nil
}

// stop lets the worker finish what it runs, and waits for it.
func (p *workerProcess) stop() error {
	_ = p.stdin.Close() // a worker that is gone has closed it already
	return <-p.done
}
