//go:build unix

package redisstreams

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// childVariable makes a process of the test binary do a childPlan.
const childVariable = "BACKSTAGE_REDISSTREAMS_CHILD"

// childPlan is what such a process does until it kills itself at a point, and it says
// what it was answered.
type childPlan struct {
	URL, Namespace string
	Do             string // "publish", "work", "promote", "publish due" or "replay"
	Point          string
	Count          int64 // at which passage of the point; counting starts when it says "ready"
	Prefix         string
}

func child(text string) {
	var plan childPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		panic(err)
	}
	var armed atomic.Bool
	var passed atomic.Int64
	cfg := Config{URL: plan.URL, Namespace: plan.Namespace, PromotionLease: 500 * time.Millisecond}
	s, err := open(context.Background(), cfg, internals{hook: func(point string) {
		if point == plan.Point && armed.Load() && passed.Add(1) == plan.Count {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // it takes a moment
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
		childWork(s, plan.Prefix)
	case "promote":
		_ = s.provider.Delays.Promote(context.Background(), nil)
	case "publish due":
		held, _ := s.provider.Lend("b")
		_ = held.Promote(context.Background(), func(ctx context.Context, jobs []provider.Job) []provider.Stored {
			return s.Publish(ctx, jobs, provider.PublishOptions{Accepted: true})
		})
	case "replay":
		childReplay(s)
	}
}

// childPublish publishes jobs that are ready and jobs that are not.
func childPublish(s *store, prefix string) {
	for i := 0; ; i++ {
		j := job(fmt.Sprint(prefix, i))
		if i%2 == 1 {
			j.Delay = time.Millisecond
		}
		r := s.Publish(context.Background(), []provider.Job{j}, provider.PublishOptions{})
		fmt.Println(r[0].Outcome, j.ID)
	}
}

// childWork takes jobs and hands each over to another.
func childWork(s *store, name string) {
	opts := provider.SubscribeOptions{Worker: name, Lease: 300 * time.Millisecond, Lanes: []provider.Lane{{Queue: "q", Slots: 1}}}
	sub, err := s.Subscribe(context.Background(), opts)
	for err == nil {
		var got []provider.Delivery
		got, err = sub.Receive(context.Background(), []string{"q"}, 3)
		for _, d := range got {
			sub.Extend(context.Background(), got)
			if err := d.Ack(context.Background(), []provider.Job{job("next-"+d.Job().ID, onQueue("next"))}); err == nil {
				fmt.Println("acked", d.Job().ID)
			}
		}
	}
	fmt.Println("error", err)
}

func childReplay(s *store) {
	for {
		letters, _, err := s.provider.Dead.List(context.Background(), provider.DeadFilter{Limit: 5}, "")
		if err != nil || len(letters) == 0 {
			select {}
		}
		for _, l := range letters {
			if r, err := s.provider.Dead.Replay(context.Background(), l.Address); err == nil {
				fmt.Println(r[0].Outcome, l.Job.ID)
			}
		}
	}
}

// process is a child as its parent sees it.
type process struct {
	cmd   *exec.Cmd
	said  map[string][]string // by first word; read after ended
	ready chan struct{}
	ended chan struct{}
}

// start starts a child and waits until it has connected.
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
			var word, rest string
			_, _ = fmt.Sscan(lines.Text(), &word, &rest)
			if word == "ready" {
				close(p.ready)
			}
			p.said[word] = append(p.said[word], rest)
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	select {
	case <-p.ready:
	case <-p.ended:
		t.Fatalf("the child ended: %v", p.said)
	}
	return p
}

// died waits for the child's end.
func (p *process) died(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patient):
		t.Fatal("the child did not reach its point")
	}
}

// rounds is how often each point is tried.
func rounds() int {
	switch n, _ := strconv.Atoi(os.Getenv("BACKSTAGE_SOAK")); {
	case n == 1:
		return 100
	case n > 1:
		return n
	}
	return 3
}

// drain works a queue off, and returns how often each job came.
func drain(t *testing.T, s *store, queue string) map[string]int {
	t.Helper()
	seen := make(map[string]int)
	sub := s.worker(t, time.Minute, queue)
	for quiet := 0; quiet < 2; quiet++ {
		for _, d := range sub.gets(t, time.Second, 1000) {
			seen[d.Job().ID]++
			ack(t, d)
			quiet = 0
		}
	}
	return seen
}

// TestPublisherDies at each step of its publish: what it was told is stored is there,
// once, and of what it was not told at most the last.
func TestPublisherDies(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"add begins", "add is done", "put begins", "put is done", "enlist begins", "enlist is done"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := shared(t, Config{})
			promotes(t, s.provider.Delays, nil)
			for round := range rounds() {
				count := int64(1 + round%5)
				if point[:6] == "enlist" {
					count = 1
				}
				p := start(t, childPlan{URL: s.cfg.URL, Namespace: s.cfg.Namespace, Do: "publish", Point: point, Count: count, Prefix: fmt.Sprint("r", round, "-")})
				p.died(t)
				seen := drain(t, s, "q")
				for _, id := range p.said["stored"] {
					if seen[id] != 1 {
						t.Errorf("job %s was stored and came %d times", id, seen[id])
					}
				}
				if more := len(seen) - len(p.said["stored"]); more < 0 || more > 1 {
					t.Errorf("%d jobs came that nobody had heard of; want at most the last", more)
				}
			}
			empty(t, s, "q")
		})
	}
}

// TestWorkerDies at each step of its work: each job is handed over once.
func TestWorkerDies(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"read begins", "read is done", "extend begins", "extend is done", "settle begins", "settle is done"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := shared(t, Config{})
			n := 10 * rounds()
			s.stores(t, jobs(n, "")...)
			for round := range rounds() {
				p := start(t, childPlan{URL: s.cfg.URL, Namespace: s.cfg.Namespace, Do: "work", Point: point, Count: int64(1 + round%4), Prefix: fmt.Sprint("worker", round)})
				p.died(t)
			}
			sub := s.worker(t, time.Minute, "q")
			for quiet := 0; quiet < 3; quiet++ {
				for _, d := range sub.gets(t, time.Second, 1000) {
					quiet = 0
					if err := d.Ack(t.Context(), []provider.Job{job("next-"+d.Job().ID, onQueue("next"))}); err != nil {
						t.Error(err)
					}
				}
			}
			next := drain(t, s, "next")
			for i := range n {
				if id := fmt.Sprint("next-", i); next[id] != 1 {
					t.Errorf("the next job of %d came %d times; want once", i, next[id])
				}
			}
			empty(t, s, "q")
		})
	}
}

// TestPromoterDies at each step of moving due jobs: each comes once.
func TestPromoterDies(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"due begins", "due is done", "promote begins", "promote is done"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := shared(t, Config{})
			for range rounds() {
				if r := s.provider.Delays.Hold(t.Context(), jobs(20, "")); r[0].Outcome != provider.OutcomeStored {
					t.Fatal(r[0].Err)
				}
				start(t, childPlan{URL: s.cfg.URL, Namespace: s.cfg.Namespace, Do: "promote", Point: point, Count: 1}).died(t)
				ctx, stop := context.WithTimeout(t.Context(), time.Second)
				if err := s.provider.Delays.Promote(ctx, nil); err != nil {
					t.Error(err)
				}
				stop()
				for id, n := range drain(t, s, "q") {
					if n != 1 {
						t.Errorf("job %s came %d times; want once", id, n)
					}
				}
			}
			empty(t, s, "q")
		})
	}
}

// TestPromoterDiesAroundItsPublish into another store: once, or, where it had published
// and not forgotten, twice.
func TestPromoterDiesAroundItsPublish(t *testing.T) {
	t.Parallel()
	for point, copies := range map[string]int{
		"reserve begins": 1, "reserve is done": 1, "reserved": 1, "published": 2, "conclude begins": 2, "conclude is done": 1,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := shared(t, Config{PromotionLease: 5 * time.Second})
			held, _ := s.provider.Lend("b")
			for range rounds() {
				if r := held.Hold(t.Context(), jobs(5, "")); r[0].Outcome != provider.OutcomeStored {
					t.Fatal(r[0].Err)
				}
				start(t, childPlan{URL: s.cfg.URL, Namespace: s.cfg.Namespace, Do: "publish due", Point: point, Count: 1}).died(t)
				ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
				err := held.Promote(ctx, func(ctx context.Context, jobs []provider.Job) []provider.Stored {
					return s.Publish(ctx, jobs, provider.PublishOptions{Accepted: true})
				})
				stop()
				if err != nil {
					t.Error(err)
				}
				seen := drain(t, s, "q")
				for i := range 5 {
					if n := seen[fmt.Sprint(i)]; n != copies {
						t.Errorf("job %d came %d times; want %d", i, n, copies)
					}
				}
				if n, err := held.Held(t.Context(), "q"); err != nil || n.String() != "0" {
					t.Errorf("held afterwards: %v, %v; want 0", n, err)
				}
			}
		})
	}
}

// TestReplayerDies at each step: each letter is in one of the two places, and in one
// alone.
func TestReplayerDies(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"replay begins", "replay is done"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := shared(t, Config{})
			n := 10
			for round := range rounds() {
				s.stores(t, jobs(n, "")...)
				sub := s.worker(t, time.Minute, "q")
				for _, d := range sub.takes(t, n) {
					if err := d.DeadLetter(t.Context(), failure("permanent", "no")); err != nil {
						t.Fatal(err)
					}
				}
				start(t, childPlan{URL: s.cfg.URL, Namespace: s.cfg.Namespace, Do: "replay", Point: point, Count: int64(1 + round%n)}).died(t)
				seen := drain(t, s, "q")
				letters, _, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{}, "")
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range letters {
					seen[l.Job.ID]++
					if _, err := s.provider.Dead.Discard(t.Context(), l.Address); err != nil {
						t.Fatal(err)
					}
				}
				for i := range n {
					if got := seen[fmt.Sprint(i)]; got != 1 {
						t.Errorf("job %d is in %d places; want one", i, got)
					}
				}
			}
		})
	}
}
