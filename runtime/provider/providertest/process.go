package providertest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// process is a process of the test binary that carries a plan out.
type process struct {
	t      *env
	cmd    *exec.Cmd
	in     io.WriteCloser
	said   chan string
	errors bytes.Buffer
	ended  func()
}

// spawn starts a process. It ends with the check at the latest.
func (t *env) spawn(pl plan) *process {
	t.Helper()
	pl.Address = t.h.Address
	if t.round == lent {
		pl.Lender = t.h.LenderAddress
	}
	text, err := json.Marshal(pl)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatalf("this binary: %v", err)
	}
	p := &process{t: t, cmd: exec.Command(binary), said: make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), planVariable+"="+string(text))
	p.cmd.Stderr = &p.errors
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatalf("pipe: %v", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("pipe: %v", err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start: %v", err)
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		defer close(p.said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.said <- lines.Text()
		}
	}()
	p.ended = sync.OnceFunc(func() {
		_ = p.cmd.Process.Kill()
		<-heard
		_ = p.cmd.Wait()
	})
	t.Cleanup(p.ended)
	return p
}

// kill ends the process with SIGKILL and waits until it is gone.
func (p *process) kill() { p.ended() }

// hear waits for a line with a prefix and returns the rest of it.
func (p *process) hear(prefix string) string {
	p.t.Helper()
	patient := time.After(p.t.patience)
	for {
		select {
		case line, ok := <-p.said:
			if !ok {
				p.ended()
				p.t.Fatalf("a process ended before it said %q:\n%s", prefix, p.errors.String())
			}
			if rest, found := strings.CutPrefix(line, prefix); found {
				return strings.TrimSpace(rest)
			}
		case <-patient:
			p.t.Fatalf("a process did not say %q within %v", prefix, p.t.patience)
		}
	}
}

// goOn lets a process go on from where it stopped.
func (p *process) goOn() {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, "go on"); err != nil {
		p.t.Fatalf("go on: %v", err)
	}
}

// newChain returns the work of a check, with a ledger of its own.
func (t *env) newChain(lane int) *chain {
	t.Helper()
	dir, err := os.MkdirTemp("", "providertest")
	if err != nil {
		t.Fatalf("ledger: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &chain{ledger: filepath.Join(dir, "ledger"), lane: lane, p: t.p}
}

// inherit starts a worker that runs to the end what is there.
func (t *env) inherit(c *chain) (stop func()) {
	t.Helper()
	w, err := c.worker(max(t.h.Lease, 30*time.Second), 4)
	if err != nil {
		t.Fatalf("worker: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("a worker that ends what others left: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// begin enqueues a chain that must be stored.
func (t *env) begin(c *chain, name string) (id string) {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	receipt, err := c.enqueue(ctx, name, "")
	if err != nil || receipt.Duplicate {
		t.Fatalf("enqueue %s: %+v, %v", name, receipt, err)
	}
	return receipt.ID
}

// entries returns all runs, oldest first.
func (t *env) entries(c *chain) []entry {
	t.Helper()
	all, err := c.entries()
	if err != nil {
		t.Fatalf("ledger: %v", err)
	}
	return all
}

// ledger returns all runs, by chain and task, oldest first.
func (t *env) ledger(c *chain) map[string]map[string][]entry {
	t.Helper()
	runs := make(map[string]map[string][]entry)
	for _, e := range t.entries(c) {
		if runs[e.chain] == nil {
			runs[e.chain] = make(map[string][]entry)
		}
		runs[e.chain][e.task] = append(runs[e.chain][e.task], e)
	}
	return runs
}

// ends waits until a chain has ended, and a little longer, and returns its runs by
// task.
func (t *env) ends(c *chain, name string) map[string][]entry {
	t.Helper()
	t.until("chain "+name+" ends", func() bool { return len(t.ledger(c)[name]["Third"]) > 0 })
	time.Sleep(quiet)
	return t.ledger(c)[name]
}
