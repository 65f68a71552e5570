package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/providers/rabbitmq"
	"github.com/backstage-go/backstage/runtime"

	benchv1 "github.com/backstage-go/backstage/bench/gen/bench/v1"
	"github.com/backstage-go/backstage/bench/gen/bench/v1/worktasks"
)

// What a worker says, a line each.
const (
	ready   = "ready"   // it receives
	started = "started" // a handler was called
)

// serve is a worker's process. Its handlers do not return; it ends with its parent.
func serve(addr string, lease time.Duration, slots int) error {
	ctx := context.Background()
	store, err := rabbitmq.Open(ctx, rabbitmq.Config{URL: brokers.RabbitMQURL(addr)})
	if err != nil {
		return err
	}
	worker, err := backstage.NewWorker(store, backstage.WorkerConfig{
		Concurrency: slots, Lease: lease, Logger: slog.New(slog.DiscardHandler),
		Observer: func(e backstage.Event) {
			if _, ok := e.(backstage.WorkerStarted); ok {
				fmt.Println(ready)
			}
		},
	})
	if err != nil {
		return err
	}
	worktasks.RegisterPlain(worker, func(ctx context.Context, _ *benchv1.PlainRequest) error {
		fmt.Println(started)
		<-ctx.Done()
		return ctx.Err()
	})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent has
		os.Exit(1)
	}()
	return worker.Run(ctx)
}

// worker is such a process, as its parent sees it.
type worker struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan string // closed when it has ended
}

// hire starts a worker on the RabbitMQ at an address, and returns when it receives.
func (p plan) hire(addr string) (*worker, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{lines: make(chan string, 1+2*p.jobs)}
	w.cmd = exec.Command(program, "-worker", addr, "-lease", p.lease.String(), "-jobs", strconv.Itoa(p.jobs))
	w.cmd.Stderr = os.Stderr
	stdin, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	w.stdin = stdin
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(w.lines)
		for said := bufio.NewScanner(stdout); said.Scan(); {
			w.lines <- said.Text()
		}
	}()
	select {
	case line := <-w.lines:
		if line == ready {
			return w, nil
		}
		err = fmt.Errorf("a worker said %q", line)
	case <-time.After(patience):
		err = errors.New("a worker does not receive")
	}
	w.dismiss()
	return nil, err
}

func (w *worker) process() *os.Process { return w.cmd.Process }

var errInTime = errors.New("not in time")

// starts waits for a number of handlers to be called, and returns how many were.
func (w *worker) starts(count int, within time.Duration) (n int, err error) {
	for end := time.After(within); n < count; {
		select {
		case line, ok := <-w.lines:
			if !ok {
				return n, errors.New("its process has ended")
			}
			if line == started {
				n++
			}
		case <-end:
			return n, errInTime
		}
	}
	return n, nil
}

// dismiss ends the process, whatever state it is in.
func (w *worker) dismiss() {
	_ = w.process().Kill() // gone already
	_ = w.stdin.Close()
	for range w.lines {
	}
	_ = w.cmd.Wait() // killed
}
