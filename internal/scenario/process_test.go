package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers"
	"github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// lease is short, so that the tests do not wait long for a dead worker's jobs.
const lease = 2 * time.Second

// takeover is the longest until a dead worker's jobs start elsewhere, with room
// for a machine that is busy.
const takeover = lease + 5*time.Second + 20*time.Second

// workerEnv makes the test binary a worker process.
const workerEnv = "BACKSTAGE_SCENARIO_WORKER"

// setup says what a worker process is to be.
type setup struct {
	Address     string
	Ledger      ledger
	Queue       string
	Concurrency int
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
	p, err := providers.Open(ctx, s.Address)
	if err != nil {
		return err
	}
	worker, err := backstage.NewWorker(p, backstage.WorkerConfig{
		Concurrency: s.Concurrency, Lease: lease, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	r := registration(s.Queue)
	r.Aliases = s.Aliases
	if s.Name != "" {
		r.Name = s.Name
	}
	backstage.RegisterChain(worker, r, deeds{s.Ledger}.do)
	if err := worker.Run(ctx); err != nil {
		return err
	}
	return p.Close(context.Background())
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
			t.Logf("worker %d:\n%s", p.cmd.Process.Pid, tail(log, 4000))
		}
	})
	return p
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %v: %v", s, err)
	}
}

// wait waits until the process has ended, and returns its error.
func (p *process) wait() error {
	p.t.Helper()
	select {
	case <-p.done:
		return p.err
	case <-time.After(time.Minute):
		p.t.Fatalf("worker %d does not end", p.cmd.Process.Pid)
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

// stage is a store with a client on it.
type stage struct {
	t        *testing.T
	address  string
	ledger   ledger
	provider *provider.Provider
	client   *backstage.Client
}

// newStage opens a new store; settings are those of its address.
func newStage(t *testing.T, settings string) *stage {
	t.Helper()
	dir := t.TempDir()
	s := &stage{t: t, address: "embedded:" + filepath.Join(dir, "jobs.db") + settings, ledger: ledger(filepath.Join(dir, "ledger"))}
	var err error
	if s.provider, err = providers.Open(t.Context(), s.address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.provider.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if s.client, err = backstage.NewClient(s.provider, backstage.ClientConfig{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// setup returns what a worker process of this stage is.
func (s *stage) setup(queue string, concurrency int) setup {
	return setup{Address: s.address, Ledger: s.ledger, Queue: queue, Concurrency: concurrency}
}

// worker runs a worker in this process until the test ends.
func (s *stage) worker(queue string, concurrency int, handle func(context.Context, payload, *backstage.Next) error) {
	s.t.Helper()
	w, err := backstage.NewWorker(s.provider, backstage.WorkerConfig{Concurrency: concurrency, Lease: lease, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	backstage.RegisterChain(w, registration(queue), handle)
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- w.Run(ctx) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			s.t.Errorf("worker: %v", err)
		}
	})
}

func (s *stage) enqueue(jobs ...backstage.Job) []backstage.Receipt {
	s.t.Helper()
	receipts, err := s.client.Enqueue(s.t.Context(), jobs...)
	if err != nil {
		s.t.Fatal(err)
	}
	return receipts
}

// until waits for a condition, and fails with what it says otherwise.
func (s *stage) until(most time.Duration, condition func() (ok bool, state string)) {
	s.t.Helper()
	deadline := time.Now().Add(most)
	for {
		ok, state := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("after %v: %s", most, state)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// untilQuiet waits until nothing is ready, running or held.
func (s *stage) untilQuiet(most time.Duration) {
	s.t.Helper()
	s.until(most, func() (bool, string) {
		queues, err := s.provider.Stats.Queues(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, queue := range queues {
			stats, err := s.provider.Stats.Queue(s.t.Context(), queue)
			if err != nil {
				s.t.Fatal(err)
			}
			for _, m := range []provider.Measure[int64]{stats.Depth, stats.InFlight, stats.Held} {
				if n, _ := m.Get(); n > 0 {
					return false, fmt.Sprintf("queue %s is not quiet: %+v", queue, stats)
				}
			}
		}
		return true, ""
	})
}

// dead returns the dead letters by what they were about.
func (s *stage) dead() map[string]provider.DeadLetter {
	s.t.Helper()
	all := make(map[string]provider.DeadLetter)
	for page := ""; ; {
		letters, next, err := s.provider.Dead.List(s.t.Context(), provider.DeadFilter{}, page)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, letter := range letters {
			all[letter.Job.ID] = letter
		}
		if next == "" {
			return all
		}
		page = next
	}
}

// long returns the count of a scenario's long form under BACKSTAGE_SOAK, and of
// its short form otherwise.
func long(short, soak int) int {
	if os.Getenv("BACKSTAGE_SOAK") != "" {
		return soak
	}
	return short
}
