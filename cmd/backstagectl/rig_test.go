package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/cmd/backstagectl/internal/ctltest"
	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/internal/command/transcript"
	"github.com/backstage-go/backstage/providers"
	"github.com/backstage-go/backstage/providers/redisstreams"
	"github.com/backstage-go/backstage/runtime/provider"
)

// rig is a file of jobs, and a folder around it.
type rig struct {
	*testing.T
	dir, url string
	p        *provider.Provider
	stdin    string
	now      func() time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, dir: t.TempDir(), now: time.Now}
	r.url = "embedded:" + filepath.Join(r.dir, "jobs.db")
	p, err := providers.Open(t.Context(), r.url+"?synchronous=normal")
	r.opened(p, err)
	return r
}

// redisRig is a namespace of a Redis server in the place of the file.
func redisRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, dir: t.TempDir(), now: time.Now}
	r.url = "redis://" + brokers.SharedRedis(t) + "#ctl-" + strings.ToLower(rand.Text()[:10])
	p, err := open(t.Context(), r.url)
	r.opened(p, err)
	return r
}

// rigs are all brokers that tests have.
func rigs() map[string]func(*testing.T) *rig {
	return map[string]func(*testing.T) *rig{"embedded": newRig, "redis": redisRig}
}

func (r *rig) opened(p *provider.Provider, err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			r.Error(err)
		}
	})
	r.p = p
}

func (r *rig) bury(jobs ...provider.Job) {
	r.Helper()
	ctltest.Bury(r, r.p, ctltest.Failed(), jobs...)
}

// addresses returns the addresses of all dead letters, by their jobs.
func (r *rig) addresses() map[string]string {
	r.Helper()
	out := map[string]string{}
	for _, l := range ctltest.Letters(r, r.p) {
		out[l.Job.ID] = l.Address
	}
	return out
}

// depth is how many jobs wait in a queue.
func (r *rig) depth(queue string) int64 {
	r.Helper()
	numbers, err := r.p.Stats.Queue(r.Context(), queue)
	if err != nil {
		r.Fatal(err)
	}
	n, _ := numbers.Depth.Get()
	return n
}

// ctl runs a command on the rig's file, unless it names another.
func (r *rig) ctl(words ...string) transcript.Result {
	r.Helper()
	return r.ctlUntil(r.Context(), words...)
}

func (r *rig) ctlUntil(ctx context.Context, words ...string) transcript.Result {
	var stdout, stderr bytes.Buffer
	w := world{open: open, now: r.now, getenv: func(name string) string { return map[string]string{urlVariable: r.url}[name] }}
	code := program(w).Run(ctx, words, strings.NewReader(r.stdin), &stdout, &stderr)
	return transcript.Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: code}
}

// want fails the test unless a command ended with a code, and its output has texts
// in it: on standard error for those that begin with "!".
func (r *rig) want(got transcript.Result, code int, texts ...string) {
	r.Helper()
	if got.Code != code {
		r.Errorf("exit %d, want %d:\n%s", got.Code, code, got)
	}
	for _, text := range texts {
		in := got.Stdout
		if rest, ok := strings.CutPrefix(text, "!"); ok {
			in, text = got.Stderr, rest
		}
		if !strings.Contains(in, text) {
			r.Errorf("no %q in:\n%s", text, got)
		}
	}
}

// open opens what only tests have, and what providers open.
func open(ctx context.Context, url string) (*provider.Provider, error) {
	switch url {
	case "odd:bare":
		return &provider.Provider{Name: "odd", Close: closed}, nil
	case "odd:unknown", "odd://shop:secret@host/unknown?sentinel_password=secret", "odd://host/unknown":
		return &provider.Provider{Name: "odd", Stats: unknowing{}, Dead: oddLetters{}, Close: closed}, nil
	case "odd:deaf":
		select {} // it never looks at its context
	case "odd:slow":
		<-ctx.Done()
		return nil, fmt.Errorf("dial redis://shop:secret@10.0.0.1:6379: %w", ctx.Err())
	case "odd:loud":
		return nil, errors.New("odd://shop:secret@host/0 is not known")
	}
	if at, namespace, found := strings.Cut(url, "#"); found {
		return redisstreams.Open(ctx, redisstreams.Config{URL: at, Namespace: namespace})
	}
	return providers.OpenExisting(ctx, url)
}

func closed(context.Context) error { return nil }

// unknowing are numbers of a broker that cannot tell.
type unknowing struct{}

func (unknowing) Queues(context.Context) ([]string, error) { return []string{"mail", "orders"}, nil }

func (unknowing) Queue(_ context.Context, queue string) (provider.QueueStats, error) {
	if queue == "mail" {
		return provider.QueueStats{Depth: provider.Measured[int64](12), OldestReady: provider.Measured(90 * time.Second), Dead: provider.Measured[int64](0), OldestDead: provider.Measured[time.Duration](0)}, nil
	}
	return provider.QueueStats{}, nil
}

var oddAt = time.Now().Add(-10 * time.Minute)

// oddLetters are dead letters that are hard to show or to replay.
type oddLetters struct{}

func (oddLetters) all() []provider.DeadLetter {
	at := oddAt
	job := func(id string, change func(*provider.Job)) provider.Job {
		j := provider.Job{Format: 1, ID: id, Task: "shop.v1.OrderTasks.Charge", Queue: "orders", Payload: []byte("SECRET"), Enqueued: at.Add(-time.Hour), FirstDue: at.Add(-time.Hour)}
		change(&j)
		return j
	}
	hostile := provider.Failure{At: at, Class: "failed", Message: "line one\nline two \x1b[2J\u202e hidden", Worker: "w\x07", Attempt: 1, Detail: "goroutine 1\n\tmain.go:3 \x1b[31m"}
	return []provider.DeadLetter{
		{Address: "raw/1", Queue: "orders", At: at, Failure: provider.Failure{Class: provider.ClassNoRecord, Message: "the bytes are not a job record"}, Raw: []byte("SECRET bytes")},
		{Address: "new/1", Queue: "orders", At: at, Failure: ctltest.Failed(), Job: job("N-1", func(j *provider.Job) { j.Format, j.Requires = 2, []string{"colours"} })},
		{Address: "code/1", Queue: "orders", At: at, Failure: ctltest.Failed(), Job: job("C-1", func(j *provider.Job) { j.Codec, j.KeyID = "aes", "key-7" })},
		{Address: "bad/1", Queue: "orders", At: at, Failure: hostile, Job: job("H-1", func(j *provider.Job) {
			j.History, j.Headers, j.Dedupe = []provider.Failure{hostile}, map[string]string{"a": "b\x1b"}, provider.Dedupe{Key: "k", UntilDone: true}
		})},
	}
}

func (o oddLetters) List(_ context.Context, filter provider.DeadFilter, _ string) ([]provider.DeadLetter, string, error) {
	var out []provider.DeadLetter
	for _, l := range o.all() {
		if filter.Match(&l) {
			out = append(out, l)
		}
	}
	return out, "", nil
}

func (o oddLetters) Get(_ context.Context, address string) (provider.DeadLetter, error) {
	for _, l := range o.all() {
		if l.Address == address {
			return l, nil
		}
	}
	return provider.DeadLetter{}, provider.ErrNotFound
}

func (oddLetters) Replay(_ context.Context, addresses ...string) ([]provider.Stored, error) {
	return make([]provider.Stored, len(addresses)), nil // unknown
}

func (oddLetters) Discard(_ context.Context, addresses ...string) ([]provider.Stored, error) {
	stored := make([]provider.Stored, len(addresses))
	for i := range stored {
		stored[i] = provider.Stored{Outcome: provider.OutcomeRefused, Err: errors.New("redis://shop:secret@host says no")}
	}
	return stored, nil
}
