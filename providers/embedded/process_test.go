//go:build unix

package embedded

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// childVariable makes a process of the test binary do a childPlan.
const childVariable = "BACKSTAGE_EMBEDDED_CHILD"

// childPlan is what such a process does: it publishes jobs until it is killed, or
// works on them, and says what was acknowledged.
type childPlan struct {
	Path   string
	Do     string         // "publish", "work" or "promote"
	Point  string         // where the process ends or stops
	Count  int64          // at which passage of the point; counting starts when it says "ready"
	Signal syscall.Signal // by which
	Prefix string         // of ids
	Lender string         // for "promote"
}

func child(text string) {
	var plan childPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		panic(err)
	}
	var armed atomic.Bool
	var passed atomic.Int64
	s, err := open(plan.Path, Config{PromotionLease: 500 * time.Millisecond}, internals{hook: func(point string) {
		if point == plan.Point && armed.Load() && passed.Add(1) == plan.Count {
			_ = syscall.Kill(os.Getpid(), plan.Signal)
		}
	}})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	armed.Store(true)
	switch plan.Do {
	case "publish":
		childPublish(s, plan.Prefix)
	case "work":
		childWork(s)
	case "promote":
		childPromote(s)
	}
}

func childPublish(s *store, prefix string) {
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s%d", prefix, i)
		r := s.Publish(context.Background(), []provider.Job{job(id, keyed(fmt.Sprint(i%3)))}, provider.PublishOptions{})
		fmt.Println(r[0].Outcome, id)
	}
}

func childWork(s *store) {
	opts := provider.SubscribeOptions{Worker: "child", Lease: 300 * time.Millisecond, Lanes: []provider.Lane{{Queue: "q", Slots: 1}}}
	sub, err := s.Subscribe(context.Background(), opts)
	for err == nil {
		var got []provider.Delivery
		got, err = sub.Receive(context.Background(), []string{"q"}, 3)
		for _, d := range got {
			fmt.Println("run", d.Job().ID)
			if err := d.Ack(context.Background(), []provider.Job{job("next-"+d.Job().ID, onQueue("next"))}); err == nil {
				fmt.Println("acked", d.Job().ID)
			}
		}
	}
	fmt.Println("error", err)
}

// childPromote moves what is held in scope "b" into the file's own queue, by
// publishing.
func childPromote(s *store) {
	held, _ := s.provider.Lend("b")
	err := held.Promote(context.Background(), func(ctx context.Context, jobs []provider.Job) []provider.Stored {
		return s.Publish(ctx, jobs, provider.PublishOptions{Accepted: true})
	})
	fmt.Println("error", err)
}

// process is a child as its parent sees it.
type process struct {
	cmd   *exec.Cmd
	said  map[string][]string // by first word; read after ended
	ready chan struct{}
	ended chan struct{}
}

// start starts a child and waits until it has opened the file.
func start(t *testing.T, plan childPlan) *process {
	t.Helper()
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0]), said: map[string][]string{}, ready: make(chan struct{}), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			word, rest, _ := strings.Cut(lines.Text(), " ")
			if word == "ready" {
				close(p.ready)
			}
			p.said[word] = append(p.said[word], rest)
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() { p.kill() })
	select {
	case <-p.ready:
	case <-p.ended:
		t.Fatalf("the child ended: %v", p.said)
	}
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// died waits for the child's end.
func (p *process) died(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the child did not reach its point")
	}
}

func TestPublisherDiesInsideATransaction(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"begun", "applied", "committed"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "jobs.db")
			s := openAt(t, path, Config{}, internals{})
			for round := range int64(4) {
				p := start(t, childPlan{Path: path, Do: "publish", Point: point, Count: 5 + 3*round, Signal: syscall.SIGKILL, Prefix: fmt.Sprint("r", round, "-")})
				p.died(t)
				seen := drain(t, s, "q", 3*time.Second)
				for _, id := range p.said["stored"] {
					if seen[id] != 1 {
						t.Errorf("job %s was stored and came %d times", id, seen[id])
					}
				}
				if more := len(seen) - len(p.said["stored"]); more < 0 || more > 1 {
					t.Errorf("%d jobs came that nobody had heard of; want at most the last", more)
				}
			}
			wantStats(t, s, "q", 0, 0, 0, 0)
		})
	}
}

func TestWorkerDiesInsideATransaction(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"begun", "applied", "committed"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "jobs.db")
			s := openAt(t, path, Config{}, internals{})
			runs := map[string]int{}
			const jobs = 60
			var all []provider.Job
			for i := range jobs {
				all = append(all, job(fmt.Sprint(i), keyed(fmt.Sprint(i%7))))
			}
			publish(t, s, all...)
			for round := range int64(6) {
				p := start(t, childPlan{Path: path, Do: "work", Point: point, Count: 2 + round, Signal: syscall.SIGKILL})
				p.died(t)
				for _, id := range p.said["run"] {
					runs[id]++
				}
			}
			sub := subscribe(t, s)
			for {
				got := receive(t, sub, 1, time.Second)
				if len(got) == 0 {
					break
				}
				runs[got[0].Job().ID]++
				if err := got[0].Ack(t.Context(), []provider.Job{job("next-"+got[0].Job().ID, onQueue("next"))}); err != nil {
					t.Error(err)
				}
			}
			next := drain(t, s, "next", 3*time.Second)
			for i := range jobs {
				if id := fmt.Sprint("next-", i); next[id] != 1 {
					t.Errorf("the next job of %d is there %d times; want once", i, next[id])
				}
			}
			wantStats(t, s, "q", 0, 0, 0, 0)
		})
	}
}

func TestPromoterDiesAroundItsPublish(t *testing.T) {
	t.Parallel()
	for point, copies := range map[string]int{"reserved": 1, "published": 2} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "jobs.db")
			s := openAt(t, path, Config{}, internals{})
			held, _ := s.provider.Lend("b")
			for i := range 5 {
				if r := held.Hold(t.Context(), []provider.Job{job(fmt.Sprint(i))}); r[0].Outcome != provider.OutcomeStored {
					t.Fatal(r[0].Err)
				}
			}
			p := start(t, childPlan{Path: path, Do: "promote", Point: point, Count: 1, Signal: syscall.SIGKILL})
			p.died(t)
			promoteWhile(t, held, func(ctx context.Context, jobs []provider.Job) []provider.Stored {
				return s.Publish(ctx, jobs, provider.PublishOptions{Accepted: true})
			})
			seen := drain(t, s, "q", 3*time.Second)
			for i := range 5 {
				if n := seen[fmt.Sprint(i)]; n != copies {
					t.Errorf("job %d came %d times; want %d", i, n, copies)
				}
			}
			if n, err := held.Held(t.Context(), "q"); err != nil || n.String() != "0" {
				t.Errorf("held afterwards: %v, %v; want 0", n, err)
			}
		})
	}
}

func TestStoppedWriterBlocksOthersWhoSaySo(t *testing.T) {
	t.Parallel()
	for _, how := range []syscall.Signal{syscall.SIGCONT, syscall.SIGKILL} {
		t.Run(how.String(), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "jobs.db")
			s := openAt(t, path, Config{}, internals{})
			events := observe(s)
			p := start(t, childPlan{Path: path, Do: "publish", Point: "applied", Count: 5, Signal: syscall.SIGSTOP, Prefix: "c"})
			waitForHolder(t, s)
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer cancel()
			r := s.Publish(ctx, []provider.Job{job("late")}, provider.PublishOptions{})[0]
			if r.Outcome != provider.OutcomeRefused || !errors.Is(r.Err, context.DeadlineExceeded) || !strings.Contains(r.Err.Error(), "another process") {
				t.Errorf("publishing meanwhile: %v, %v; want refused because of another process", r.Outcome, r.Err)
			}
			if err := s.provider.Health(t.Context()); err == nil || !strings.Contains(err.Error(), "another process") {
				t.Errorf("health meanwhile: %v; want that another process holds the file", err)
			}
			if _, err := s.provider.Stats.Queues(t.Context()); err != nil {
				t.Errorf("looking meanwhile: %v", err)
			}
			_ = p.cmd.Process.Signal(how)
			waitFor(t, "health", func() bool { return s.provider.Health(t.Context()) == nil })
			if got := events.kinds(); len(got) < 2 || got[0] != provider.Blocked || got[1] != provider.Unblocked {
				t.Errorf("events: %v; want blocked, unblocked", got)
			}
			p.kill()
			if seen := drain(t, s, "q", 200*time.Millisecond); seen["late"] != 0 {
				t.Error("the refused job is stored")
			}
		})
	}
}

func TestOpenDoesNotWaitForeverForAStoppedWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openAt(t, path, Config{}, internals{})
	start(t, childPlan{Path: path, Do: "publish", Point: "applied", Count: 2, Signal: syscall.SIGSTOP, Prefix: "c"})
	waitForHolder(t, s)
	if _, err := Open(path, Config{OpenWait: 200 * time.Millisecond}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("opening: %v; want the deadline", err)
	}
}

// waitForHolder waits until another process holds the write lock for good.
func waitForHolder(t *testing.T, s *store) {
	t.Helper()
	busy := 0
	waitFor(t, "the child to hold the lock", func() bool {
		got, err := s.side.try(byteWrite)
		if got {
			_ = s.side.release(byteWrite)
		}
		if busy++; got || err != nil {
			busy = 0
		}
		return busy == 40
	})
}
