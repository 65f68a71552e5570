package providertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func publishChecks() []check {
	return []check{
		{
			name: "publish/stored",
			rule: "Publish stores the jobs and says for each, in their order, what became of it. OutcomeStored: the broker has it.",
			run:  publishStored,
		}, {
			name: "publish/whole record",
			rule: "The broker stores the bytes of Marshal: a delivery's job is the one that was published, fields of a newer version included.",
			run:  publishWhole,
		}, {
			name: "publish/several queues",
			rule: "Publish stores the jobs, each in its queue; a queue that does not exist yet is made.",
			run:  publishQueues,
		}, {
			name: "publish/same id",
			rule: "The same id may be tried again: an id is not a dedupe key.",
			run:  publishSameID,
		}, {
			name: "publish/ended context",
			rule: "Publish returns when every outcome is known or ctx has ended. OutcomeRefused: it is not stored; OutcomeUnknown: it may be.",
			run:  publishEnded,
		}, {
			name: "publish/many at once",
			rule: "Methods may be called from many goroutines at once; each call still returns only when its own is on record.",
			run:  publishMany,
		}, {
			name:  "publish/durable",
			rule:  "JobFacts.Durable says that stored jobs survive the process that stored them.",
			needs: []need{needDurable},
			run:   publishDurable,
		}, {
			name:  "publish/bound",
			rule:  "A queue's bound counts every unsettled job of it; a batch is admitted job by job, and when the context ends the rest is refused with ErrQueueFull.",
			needs: []need{needBound},
			run:   publishBound,
		}, {
			name:  "publish/bound frees",
			rule:  "A client that waits for room in a bounded queue goes on when a job of it is settled.",
			needs: []need{needBound},
			run:   publishBoundFrees,
		}, {
			name:  "publish/bound passes accepted",
			rule:  "PublishOptions.Accepted marks jobs that were accepted before; a queue's bound does not apply to them, nor to next jobs.",
			needs: []need{needBound},
			run:   publishBoundAccepted,
		},
	}
}

func needDurable(t *env) string {
	if !t.facts().Durable {
		return "absent: jobs end with their process (JobFacts.Durable)"
	}
	return ""
}

func publishStored(t *env) {
	t.stored("Publish of no jobs", t.tryPublish(t.p))
	jobs := t.some(25, work)
	t.publish(t.p, jobs...)
	w := t.subscribe(t.open(), 25, work)
	got := byID(w.receive(25))
	for _, j := range jobs {
		d := got[j.ID]
		if d == nil {
			t.Errorf("%s was stored and not delivered", j.ID)
			continue
		}
		t.same(j.ID, d.Job(), &j)
		t.ack(d)
	}
	w.nothing("all jobs were delivered once")
}

func publishWhole(t *env) {
	j := t.full(work)
	t.publish(t.p, j)
	empty := t.job(work, func(j *provider.Job) { j.Payload = nil })
	t.publish(t.p, empty)
	large := t.job(work, func(j *provider.Job) { j.Payload = make([]byte, 1<<20) })
	t.publish(t.p, large)
	got := byID(t.subscribe(t.open(), 3, work).receive(3))
	for _, want := range []provider.Job{j, empty, large} {
		d := got[want.ID]
		if d == nil {
			t.Fatalf("%s was not delivered", want.ID)
		}
		t.same(want.ID, d.Job(), &want)
		t.ack(d)
	}
}

// full makes a job with everything that a record has, and with a field of a
// version to come.
func (t *env) full(queue string) provider.Job {
	j := t.job(queue)
	j.Expires = time.Hour
	j.Overrides = provider.Overrides{
		Timeout: time.Second, MaxAttempts: 3, MaxAge: time.Hour, BackoffBase: time.Second, BackoffCap: time.Minute,
	}
	j.Counters = provider.Counters{Failures: 1, Crashes: 2, Snoozes: 3, Parks: 4, Replays: 5}
	j.History = []provider.Failure{failure(1)}
	j.Replays = []provider.Replay{{At: j.Enqueued, Failures: 1, Crashes: 1}}
	j.Root, j.Parent, j.Edge, j.Ordinal = "root", "parent", "Work.Other", 7
	j.Headers = map[string]string{"a": "1", "b": "ü"}
	j.Correlation, j.Trace, j.Actor = "correlation", "trace", "actor"
	j.Tenant, j.Codec, j.KeyID = "tenant", "codec", "key"
	return t.fromLater(j)
}

// fromLater adds a field that this version does not know.
func (t *env) fromLater(j provider.Job) provider.Job {
	t.Helper()
	// Field 1000, wire type 2, "later".
	b := append(t.bytes(&j), 0xc2, 0x3e, 5, 'l', 'a', 't', 'e', 'r')
	later, err := provider.Unmarshal(b)
	if err != nil {
		t.Fatalf("Unmarshal: %v", err)
	}
	return later
}

func publishQueues(t *env) {
	queues := []string{work, other, "mail.v1", "über/queue with spaces"}
	var jobs []provider.Job
	for i := range 12 {
		jobs = append(jobs, t.job(queues[i%len(queues)]))
	}
	t.publish(t.p, jobs...)
	p := t.open()
	for _, queue := range queues {
		for _, d := range t.subscribe(p, 3, queue).receive(3) {
			if d.Job().Queue != queue {
				t.Errorf("queue %q delivered %s, which is of queue %q", queue, d.Job().ID, d.Job().Queue)
			}
			t.ack(d)
		}
	}
}

func publishSameID(t *env) {
	j := t.job(work)
	t.publish(t.p, j)
	t.publish(t.p, j)
	w := t.subscribe(t.p, 2, work)
	d := w.one()
	t.same(j.ID, d.Job(), &j)
	t.ack(d)
	// The second one may run too, or not.
	t.ack(w.during(quiet, 1)...)
	t.publish(t.p, j)
	t.ack(w.one())
}

func publishEnded(t *env) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	jobs := t.some(5, work)
	stored := t.p.Jobs.Publish(ended, jobs, provider.PublishOptions{})
	t.answers("Publish with an ended context", jobs, stored)
	w := t.subscribe(t.p, 5, work)
	got := w.during(quiet, len(jobs))
	count := tally(got)
	for _, s := range stored {
		switch {
		case s.Outcome == provider.OutcomeRefused && count[s.ID] > 0:
			t.Errorf("%s was refused (%v) and is delivered", s.ID, s.Err)
		case s.Outcome == provider.OutcomeDuplicate:
			t.Errorf("%s has no dedupe key and is a duplicate", s.ID)
		case s.Outcome != provider.OutcomeStored && s.Err == nil:
			t.Errorf("%s: %s without an error that says why", s.ID, s.Outcome)
		}
	}
	t.ack(got...)
	for i, s := range stored {
		if s.Outcome != provider.OutcomeStored {
			t.publish(t.p, jobs[i])
			t.ack(w.one())
		}
	}
}

func publishMany(t *env) {
	const callers, calls = 32, 15
	p2 := t.open()
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			p := t.p
			if c%2 == 1 {
				p = p2
			}
			for range calls {
				j := t.job(work)
				ctx, cancel := t.ctx()
				stored := p.Jobs.Publish(ctx, []provider.Job{j}, provider.PublishOptions{})
				cancel()
				if len(stored) != 1 || stored[0].ID != j.ID || stored[0].Outcome != provider.OutcomeStored {
					t.Errorf("Publish of %s: %+v; want it stored", j.ID, stored)
				}
			}
		})
	}
	wg.Wait()
	w := t.subscribe(t.p, callers*calls, work)
	t.once(w.receive(callers * calls))
	w.nothing("all jobs were delivered once")
}

// once checks that no job was delivered twice.
func (t *env) once(ds []provider.Delivery) {
	t.Helper()
	for id, n := range tally(ds) {
		if n != 1 {
			t.Errorf("%s was delivered %d times", id, n)
		}
	}
}

func publishDurable(t *env) {
	jobs := t.some(10, work)
	t.publish(t.p, jobs...)
	ctx, cancel := t.ctx()
	defer cancel()
	if err := t.p.Close(ctx); err != nil {
		t.Fatalf("Close: %v", err)
	}
	w := t.subscribe(t.open(), 10, work)
	t.once(w.receive(10))
}

// bound sets the bound of queue work.
func (t *env) bound(n int) {
	t.Helper()
	if err := t.h.Bound(work, n); err != nil {
		t.Fatalf("bound of queue %q: %v", work, err)
	}
}

// publishShortly publishes as a client that does not wait long for room.
func (t *env) publishShortly(p *provider.Provider, jobs ...provider.Job) []provider.Stored {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	stored := p.Jobs.Publish(ctx, jobs, provider.PublishOptions{})
	t.answers("Publish", jobs, stored)
	return stored
}

func publishBound(t *env) {
	t.bound(3)
	w := t.subscribe(t.p, 5, work)
	t.publish(t.p, t.job(work))
	w.one() // in flight, and so it counts
	for i, s := range t.publishShortly(t.open(), t.some(5, work)...) {
		want := provider.OutcomeStored
		if i >= 2 {
			want = provider.OutcomeRefused
		}
		t.outcome(fmt.Sprintf("job %d of 5 in a queue with room for 2", i), s, want)
		if want == provider.OutcomeRefused && !errors.Is(s.Err, provider.ErrQueueFull) {
			t.Errorf("job %d: %v; want ErrQueueFull", i, s.Err)
		}
	}
	t.publish(t.p, t.job(other))
	w.receive(2)
	w.nothing("the others were refused")
}

func publishBoundFrees(t *env) {
	t.bound(1)
	w := t.subscribe(t.p, 1, work)
	t.publish(t.p, t.job(work))
	d := w.one()
	done := make(chan provider.Stored, 1)
	waits := t.job(work)
	ctx, cancel := t.ctx()
	defer cancel()
	t.start(func() { done <- t.p.Jobs.Publish(ctx, []provider.Job{waits}, provider.PublishOptions{})[0] })
	select {
	case s := <-done:
		t.Fatalf("Publish into a full queue did not wait: %s, %v", s.Outcome, s.Err)
	case <-time.After(quiet):
	}
	t.ack(d)
	t.outcome("Publish that waited for room", <-done, provider.OutcomeStored)
	t.ack(w.one())
}

func publishBoundAccepted(t *env) {
	t.bound(1)
	w := t.subscribe(t.p, 10, work)
	t.publish(t.p, t.job(work))
	accepted := t.some(2, work)
	ctx, cancel := t.ctx()
	defer cancel()
	t.stored("Publish of accepted jobs into a full queue",
		t.p.Jobs.Publish(ctx, accepted, provider.PublishOptions{Accepted: true}))
	t.ackWith(w.one(), t.some(2, work)...)
	ds := w.receive(4)
	if t.retries(false) {
		t.retry(ds[0], provider.Again{Why: provider.SnoozedAgain})
		t.ack(w.one())
	}
	if t.p.Dead != nil {
		t.deadLetter(ds[1], failure(1))
		letters := t.letters(t.p, provider.DeadFilter{})
		t.outcome("Replay into a full queue", t.replay(t.p, letters[0].Address)[0], provider.OutcomeStored)
	}
}
