package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/backstage-go/backstage/cmd/backstagectl/internal/ctltest"
	"github.com/backstage-go/backstage/internal/command/transcript"
	"github.com/backstage-go/backstage/runtime"
)

// mainEnv makes the test program backstagectl.
const mainEnv = "BACKSTAGECTL_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		os.Exit(run(open))
	}
	os.Exit(m.Run())
}

// process is backstagectl in a process of its own.
type process struct {
	*testing.T
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

// command is a process that has not begun.
func (r *rig) command(words ...string) *process {
	p := &process{T: r.T, cmd: exec.Command(os.Args[0], words...)}
	p.cmd.Env = append(os.Environ(), mainEnv+"=1", urlVariable+"="+r.url)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	return p
}

func (r *rig) start(words ...string) *process {
	r.Helper()
	p := r.command(words...)
	p.begin()
	return p
}

func (p *process) begin() {
	p.Helper()
	if err := p.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = p.cmd.Process.Kill() })
}

// wait waits for the end of the process, and returns its exit code; -1 if it was
// killed.
func (p *process) wait() int {
	p.Helper()
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		p.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// result waits for the end of the process, and returns all of it.
func (p *process) result() transcript.Result {
	p.Helper()
	code := p.wait()
	return transcript.Result{Stdout: p.stdout.String(), Stderr: p.stderr.String(), Code: code}
}

// runs is what a worker has run: how often, by job and by how often it was replayed
// before.
type runs struct {
	mu       sync.Mutex
	changed  chan struct{}
	times    map[string]int
	replayed int // all runs of jobs that were replayed
}

func (r *runs) add(id string, replays int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times[fmt.Sprintf("%s/%d", id, replays)]++
	if replays > 0 {
		r.replayed++
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// await waits until so many runs of replayed jobs have been.
func (r *runs) await(t *testing.T, n int) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		r.mu.Lock()
		have, changed := r.replayed, r.changed
		r.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%d runs of replayed jobs, want %d", have, n)
		}
	}
}

func (r *runs) of(id string, replays int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times[fmt.Sprintf("%s/%d", id, replays)]
}

const taskName = "shop.v1.OrderTasks.Charge"

// work runs a worker until the test ends. Every job dies at first. Of those that
// were replayed each fifth dies again, and with each tenth a new job appears, which
// dies too.
func (r *rig) work(client *backstage.Client) *runs {
	r.Helper()
	done := &runs{changed: make(chan struct{}), times: map[string]int{}}
	worker, err := backstage.NewWorker(r.p, backstage.WorkerConfig{Concurrency: 4, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.Fatal(err)
	}
	backstage.Register(worker, backstage.Registration{Name: taskName, Queue: "orders"}, func(ctx context.Context, in *wrapperspb.Int64Value) error {
		info, _ := backstage.InfoFrom(ctx)
		defer done.add(info.ID, info.Replays)
		n := in.GetValue()
		if info.Replays > 0 && n%10 == 0 {
			if _, err := client.Enqueue(ctx, order(fmt.Sprintf("new-%d", n), n)); err != nil {
				r.Error(err)
			}
		}
		if info.Replays == 0 || n%5 == 0 {
			return backstage.Permanent(errors.New("no such account"))
		}
		return nil
	})
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- worker.Run(ctx) }()
	r.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			r.Error(err)
		}
	})
	return done
}

func order(id string, n int64) backstage.Job {
	return backstage.NewJob(backstage.Task[*wrapperspb.Int64Value]{Name: taskName, Queue: "orders"}, wrapperspb.Int64(n), backstage.WithID(id))
}

// dead waits until so many jobs are dead letters.
func (r *rig) dead(n int) {
	r.Helper()
	r.await(fmt.Sprintf("%d dead letters", n), func() bool {
		numbers, err := r.p.Stats.Queue(r.Context(), "orders")
		if err != nil {
			r.Fatal(err)
		}
		have, _ := numbers.Dead.Get()
		return have == int64(n)
	})
}

// await asks again and again.
func (r *rig) await(what string, is func() bool) {
	r.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(time.Minute)
	for !is() {
		select {
		case <-ticker.C:
		case <-timeout:
			r.Fatalf("there are never %s", what)
		}
	}
}

// A replay of some hundred jobs is killed three times, while workers run what was
// replayed, and jobs die: those that were replayed, and others.
func TestAReplayThatIsKilledReplaysEachJobOnce(t *testing.T) {
	t.Parallel()
	for broker, newRig := range rigs() {
		for name, journal := range map[string]bool{"with a journal": true, "without": false} {
			t.Run(broker+" "+name, func(t *testing.T) {
				t.Parallel()
				replayKilled(t, newRig(t), journal)
			})
		}
	}
}

func replayKilled(t *testing.T, r *rig, journal bool) {
	const jobs = 300
	client, err := backstage.NewClient(r.p, backstage.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var all []backstage.Job
	for n := range int64(jobs) {
		all = append(all, order(fmt.Sprintf("A-%d", n), n))
	}
	if _, err := client.Enqueue(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	done := r.work(client)
	r.dead(jobs)

	words := []string{"dead", "replay", "-queue", "orders", "-yes", "-rate", "150", "-o", "json"}
	if journal {
		words = append(words, "-journal", filepath.Join(r.dir, "journal"))
	}
	var sum tally
	for _, killAt := range []int{60, 120, 180, 0} {
		p := r.start(words...)
		if killAt > 0 {
			r.await(fmt.Sprintf("%d replayed letters", killAt), func() bool { return r.untouched("A-") <= jobs-killAt })
			_ = p.cmd.Process.Kill()
		}
		code := p.wait()
		if killAt > 0 && code != -1 || killAt == 0 && code != 0 {
			t.Fatalf("killed at %d: exit %d\n%s%s", killAt, code, p.stdout.String(), p.stderr.String())
		}
		if !journal {
			words = append(words, "-older-than", olderThan(t, p.stderr.String()))
		}
		if killAt == 0 {
			sum = summaryOf(t, p.stdout.String())
		}
	}
	if journal && (sum.Letters != jobs || sum.Replayed+sum.Gone != jobs || sum.Gone > 3*15) {
		t.Errorf("the report: %+v; want %d letters, gone only those of a step that was cut off", sum, jobs)
	}

	done.await(t, jobs)
	const again, anew = jobs / 5, jobs / 10
	r.dead(again + anew)
	for n := range jobs {
		id := fmt.Sprintf("A-%d", n)
		if first, replayed, twice := done.of(id, 0), done.of(id, 1), done.of(id, 2); first != 1 || replayed != 1 || twice != 0 {
			t.Errorf("job %s ran %d times, %d times after a replay, %d times after two; want 1, 1, 0", id, first, replayed, twice)
		}
	}
	for _, l := range ctltest.Letters(t, r.p) {
		if want := int32(1); strings.HasPrefix(l.Job.ID, "A-") && l.Job.Counters.Replays != want || strings.HasPrefix(l.Job.ID, "new-") && l.Job.Counters.Replays != 0 {
			t.Errorf("job %s is dead and was replayed %d times", l.Job.ID, l.Job.Counters.Replays)
		}
	}
}

// untouched counts the letters of jobs that were never replayed.
func (r *rig) untouched(prefix string) int {
	r.Helper()
	n := 0
	for _, l := range ctltest.Letters(r, r.p) {
		if strings.HasPrefix(l.Job.ID, prefix) && l.Job.Counters.Replays == 0 {
			n++
		}
	}
	return n
}

// olderThan finds out how a run wants to be gone on with.
func olderThan(t *testing.T, said string) string {
	t.Helper()
	found := regexp.MustCompile(`-older-than (\S+Z)`).FindStringSubmatch(said)
	if found == nil {
		t.Fatalf("it does not say how to go on:\n%s", said)
	}
	return found[1]
}

// summaryOf reads the last line of JSON.
func summaryOf(t *testing.T, out string) tally {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var s summary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return s.Summary
}

func TestCtrlCEndsAReplayBetweenTwoSteps(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted by another there")
	}
	r := newRig(t)
	r.bury(ctltest.Jobs(200)...)
	journal := filepath.Join(r.dir, "journal")
	p := r.start("dead", "replay", "-all", "-yes", "-rate", "50", "-journal", journal)
	r.await("some replayed jobs", func() bool { return r.depth("orders") > 10 })
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	got := p.result()
	got.Stdout = strings.Join(strings.Fields(got.Stdout), " ")
	replayed := r.depth("orders")
	r.want(got, 1, fmt.Sprintf("replayed %d gone", replayed), fmt.Sprintf("untried %d", 200-replayed),
		"!interrupted with", "!to go on: backstagectl dead replay -journal "+journal+" -yes")
	r.want(r.ctl("dead", "replay", "-journal", journal, "-yes", "-rate", "0"), 0, "replayed   200\n", "gone         0")
}

func TestWatchEndsWellByASignal(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted by another there")
	}
	r := newRig(t)
	r.bury(ctltest.Job("A-1"))
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		for format, want := range map[string]string{"text": "orders      0", "json": `"queue":"orders"`} {
			p := r.command("stats", "-watch=10ms", "-o", format)
			p.cmd.Stdout = nil
			out, err := p.cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			p.begin()
			lines := bufio.NewScanner(out)
			for seen := 0; seen < 3 && lines.Scan(); {
				if strings.Contains(lines.Text(), want) {
					seen++
				}
			}
			if err := p.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() { // what is still on its way
			}
			if code := p.wait(); code != 0 || p.stderr.Len() > 0 {
				t.Errorf("%v: exit %d, %q on standard error; want 0", signal, code, p.stderr.String())
			}
		}
	}
}
