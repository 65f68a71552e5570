package scenario

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime"
)

// lease is that of workers that die, where their broker can do so; it is short, so that the tests do not wait long for a dead worker's jobs. Where
// nobody dies it is calm: a slow disk is no dead worker then.
const (
	lease = 2 * time.Second
	calm  = time.Minute
)

// room is what a machine that is busy may take longer.
const room = 20 * time.Second

// workerEnv makes the test binary a worker process.
const workerEnv = "BACKSTAGE_SCENARIO_WORKER"

// setup says what a worker process is to be.
type setup struct {
	Store       store
	Ledger      ledger
	Queue       string
	More        []string // queues that it serves too
	Strict      bool     // in this order
	Concurrency int
	Lease       time.Duration
	Aliases     []string
	Name        string // of the task; taskName if empty
}

func TestMain(m *testing.M) {
	if config := os.Getenv(workerEnv); config != "" {
		if err := work(config); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given { // the scenarios wait for leases more than they compute
		_ = flag.Set("test.parallel", "6")
	}
	os.Exit(m.Run())
}

// work is a worker process. It ends gracefully by SIGTERM.
func work(config string) error {
	var s setup
	if err := json.Unmarshal([]byte(config), &s); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	p, shut, err := s.Store.open(ctx)
	if err != nil {
		return err
	}
	worker, err := backstage.NewWorker(p, s.config())
	if err != nil {
		return err
	}
	r := registration(s.Queue)
	r.Aliases = s.Aliases
	if s.Name != "" {
		r.Name = s.Name
	}
	backstage.RegisterChain(worker, r, deeds{s.Ledger}.do, backstage.Serve(s.More...))
	if err := worker.Run(ctx); err != nil {
		return err
	}
	return shut(context.Background())
}

func (s setup) config() backstage.WorkerConfig {
	cfg := backstage.WorkerConfig{
		Concurrency: s.Concurrency, Lease: s.Lease, StrictPriority: s.Strict,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Observer: s.Ledger.observe,
	}
	if s.Strict {
		for _, queue := range append([]string{s.Queue}, s.More...) {
			cfg.Queues = append(cfg.Queues, backstage.Queue{Name: queue})
		}
	}
	return cfg
}

// dies is the header of a job whose first process is killed after its handler has
// returned, and before anybody else learns of it.
const dies = "dies"

// observe writes down what a worker reports.
func (l ledger) observe(event backstage.Event) {
	switch e := event.(type) {
	case backstage.RunEnded:
		if e.Job.Headers[dies] != "" && e.Job.Crashes == 0 {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			panic(fmt.Sprintf("not dead: %v", err))
		}
	case backstage.JobSettled:
		if e.Settlement == backstage.Acked {
			l.write(entry{What: "acked", Job: e.Job.ID})
		}
	case backstage.LeaseLost:
		l.write(entry{What: "lost", Job: e.Job.ID})
	case backstage.RunStuck:
		l.write(entry{What: "stuck", Job: e.Job.ID})
	case backstage.ProviderReported:
		l.write(entry{What: string(e.Event.Kind), Subject: e.Event.Queue})
	}
}

// process is a worker in a process of its own.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error // of Wait, once done is closed
}

// start starts a worker process, which is killed when the test ends.
func start(t *testing.T, s setup) *process {
	t.Helper()
	config, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(config))
	f, err := os.CreateTemp(t.TempDir(), "worker-*.log")
	if err != nil {
		t.Fatal(err)
	}
	p.log = f.Name()
	p.cmd.Stdout, p.cmd.Stderr = f, f
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		_ = f.Close()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			log, _ := os.ReadFile(p.log)
			t.Logf("worker %d:\n%s", p.pid(), tail(log, 4000))
		}
	})
	return p
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %v: %v", s, err)
	}
}

// kill ends the process at once, and returns when it has ended.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	_ = p.wait()
}

// wait waits until the process has ended, and returns its error.
func (p *process) wait() error {
	p.t.Helper()
	select {
	case <-p.done:
		return p.err
	case <-time.After(2 * time.Minute):
		p.t.Fatalf("worker %d does not end", p.pid())
		return nil
	}
}

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// crew is some worker processes of one kind.
type crew struct {
	t       *testing.T
	setup   setup
	members []*process
}

func startCrew(t *testing.T, s setup, n int) *crew {
	t.Helper()
	c := &crew{t: t, setup: s}
	for range n {
		c.members = append(c.members, start(t, s))
	}
	return c
}

// replace starts a new process for each that has ended, and says how many.
func (c *crew) replace() int {
	c.t.Helper()
	n := 0
	for i, p := range c.members {
		if !p.alive() {
			c.members[i] = start(c.t, c.setup)
			n++
		}
	}
	return n
}

// member returns the process that wrote an entry.
func (c *crew) member(e entry) *process {
	c.t.Helper()
	for _, p := range c.members {
		if p.pid() == e.PID {
			return p
		}
	}
	c.t.Fatalf("nobody here is process %d", e.PID)
	return nil
}
