//go:build unix

package kafka

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// childPlan is what a process of the test binary does: it works off a queue, hands each
// job over to a next one, says which it has settled, and kills itself at the n-th
// passage of a point.
type childPlan struct {
	Server, Prefix, Point string
	Count                 int64
}

// child works as a plan says, until it is dead.
func child(text string) {
	var plan childPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		panic(err)
	}
	var passed atomic.Int64
	cfg := Config{Brokers: []string{plan.Server}, Prefix: plan.Prefix, Replication: 1}
	s, err := open(context.Background(), cfg, internals{hook: func(point string) {
		if point == plan.Point && passed.Add(1) == plan.Count {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // it takes a moment
		}
	}})
	var sub provider.Subscription
	if err == nil {
		sub, err = s.Subscribe(context.Background(), mortal(4, "q"))
	}
	for err == nil {
		var ds []provider.Delivery
		ds, err = sub.Receive(context.Background(), []string{"q"}, 4)
		for _, d := range ds {
			if d.Ack(context.Background(), []provider.Job{aJob("next-of-"+d.Job().ID, "next")}) == nil {
				fmt.Println(d.Job().ID)
			}
		}
	}
	fmt.Println("error", err)
}

// dies runs a child until it has killed itself, and returns which jobs it had settled.
func dies(t *testing.T, plan childPlan) map[string]bool {
	t.Helper()
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	settled := make(map[string]bool)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		settled[lines.Text()] = true
	}
	_ = cmd.Wait()
	if ctx.Err() != nil {
		t.Fatalf("the child did not reach its point; it settled %v", settled)
	}
	return settled
}

// TestAProcessThatIsKilledInsideOfASettlementLosesNothing kills a worker between what a
// settlement stores and its commit, before the commit, and after it.
func TestAProcessThatIsKilledInsideOfASettlementLosesNothing(t *testing.T) {
	t.Parallel()
	server := brokers.SharedKafka(t)
	for _, point := range []string{"carried", "commit", "committed"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			for i := range often(2, 50) {
				killedAt(t, newCluster(t, server), point, int64(2+2*i%9))
			}
		})
	}
}

func killedAt(t *testing.T, c *cluster, point string, count int64) {
	t.Helper()
	s, _ := c.open()
	jobs := someJobs(12, "q")
	publish(t, s, jobs...)
	settled := dies(t, childPlan{Server: c.server, Prefix: c.cfg.Prefix, Point: point, Count: count})
	sub := subscribe(t, s, options(20, "q", "next"))
	runs, children := make(map[string]int), make(map[string]int)
	for _, d := range receiveAll(t, sub, 2*len(jobs)) {
		id := d.job.ID
		switch {
		case d.job.Queue == "next":
			children[id]++
			ack(t, d)
		case settled[id]:
			t.Errorf("%s was settled before the kill at %s, and runs again", id, point)
			fallthrough
		default:
			runs[id]++
			if d.job.Counters.Crashes > 1 || d.job.Counters.Failures > 0 {
				t.Errorf("%s after one kill: %+v", id, d.job.Counters)
			}
			if err := d.Ack(t.Context(), []provider.Job{aJob("next-of-"+id, "next")}); err != nil {
				t.Errorf("ack of %s: %v", id, err)
			}
		}
	}
	for _, j := range jobs {
		if n := children["next-of-"+j.ID]; n < 1 || n > 2 {
			t.Errorf("%s, whose worker may have been killed at %s, has %d next jobs; want 1 or 2 with one id", j.ID, point, n)
		}
		if runs[j.ID] > 1 {
			t.Errorf("%s ran %d times after the kill", j.ID, runs[j.ID])
		}
	}
}

// receiveAll takes deliveries until so many jobs, at most, have come and then nothing.
func receiveAll(t *testing.T, sub *subscription, most int) func(func(int, *delivery) bool) {
	return func(yield func(int, *delivery) bool) {
		for n := 0; ; n++ {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			ds, _ := sub.Receive(ctx, []string{"q", "next"}, 1)
			cancel()
			if len(ds) == 0 {
				return
			}
			if n > 4*most || !yield(n, ds[0].(*delivery)) {
				t.Errorf("more than %d deliveries of %d jobs", n, most)
				return
			}
		}
	}
}
