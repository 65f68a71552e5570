package providertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func settleChecks() []check {
	return []check{
		{
			name: "settle/ack ends",
			rule: "Ack ends the job: it is never delivered again, not after its lease either.",
			run:  settleAck,
		}, {
			name: "settle/once",
			rule: "A settlement of the same kind returns ErrSettled once it is on record.",
			run:  settleOnce,
		}, {
			name: "settle/kind is fixed",
			rule: "The first settlement fixes its kind: another kind returns ErrSettled.",
			run:  settleKind,
		}, {
			name: "settle/at once from all sides",
			rule: "Of settlements that are called at once one wins, and it alone has an effect.",
			run:  settleRace,
		}, {
			name: "settle/ended context",
			rule: "After an error that is neither ErrSettled nor ErrLeaseLost the same settlement may be called again, with the same arguments.",
			run:  settleEnded,
		}, {
			name: "settle/next",
			rule: "Ack stores the next jobs, in whatever queue, and they are durable before it returns.",
			run:  settleNext,
		}, {
			name:  "settle/next with a delay",
			rule:  "While Delays is the provider's own, Ack holds next jobs with a Delay.",
			needs: []need{needOwnDelays},
			run:   settleNextDelayed,
		}, {
			name:  "settle/retry counts a failure",
			rule:  "Retry stores the job for another run, as Job.After says: a failed run counts, and is in the history.",
			needs: []need{needRetry},
			run:   settleRetry,
		}, {
			name:  "settle/snooze and park count as nothing",
			rule:  "Runs that asked to be run later, and jobs put aside because no one could run them, count neither as failures nor as crashes.",
			needs: []need{needRetry},
			run:   settleSnooze,
		}, {
			name:  "settle/retry waits",
			rule:  "Again.After is how long to wait, by the store's clock; the job is not early by more than DelayFacts.Finest.",
			needs: []need{needRetry},
			run:   settleRetryWaits,
		}, {
			name:  "settle/retry starves nobody",
			rule:  "A job without an ordering key re-enters its queue at the end when it is due.",
			needs: []need{needRetry},
			run:   settleRetryEnd,
		}, {
			name:  "settle/retry keeps fields",
			rule:  "Every rewrite goes through Job.After, so that fields of a newer version survive, and all others.",
			needs: []need{needRetry},
			run:   settleRetryKeeps,
		}, {
			name:  "settle/recorded start",
			rule:  "Where JobFacts.ExactCrashes is false, Retry with StartedAgain (and no wait) works in any case, and its copy is known as a recorded start.",
			needs: []need{needInexactCrashes},
			run:   settleStarted,
		}, {
			name: "settle/release counts as nothing",
			rule: "Release gives the job back: others have it at the latest when the subscription closes, and the run counts as nothing.",
			run:  settleRelease,
		}, {
			name: "settle/unsettled",
			rule: "A delivery that nobody settles is delivered again when its subscription closes or its lease ends, and is never lost.",
			run:  settleUnsettled,
		}, {
			name: "settle/many at once",
			rule: "Settlements from many goroutines are coalesced, and each call still returns only when its own is on record.",
			run:  settleMany,
		},
	}
}

func needInexactCrashes(t *env) string {
	if t.facts().ExactCrashes {
		return "absent: crashes are exact, so no start is put on record (JobFacts.ExactCrashes)"
	}
	return ""
}

// settlement is one of the verbs of a delivery.
type settlement struct {
	name string
	call func(ctx context.Context, d provider.Delivery) error
}

// settlements returns all verbs that the provider has for a job without an ordering
// key.
func (t *env) settlements() []settlement {
	all := []settlement{
		{"Ack", func(ctx context.Context, d provider.Delivery) error { return d.Ack(ctx, nil) }},
		{"DeadLetter", func(ctx context.Context, d provider.Delivery) error { return d.DeadLetter(ctx, failure(1)) }},
		{"Release", func(ctx context.Context, d provider.Delivery) error { return d.Release(ctx) }},
	}
	if t.retries(false) {
		all = append(all, settlement{"Retry", func(ctx context.Context, d provider.Delivery) error {
			return d.Retry(ctx, provider.Again{Why: provider.SnoozedAgain})
		}})
	}
	return all
}

func (t *env) settle(s settlement, d provider.Delivery) error {
	ctx, cancel := t.ctx()
	defer cancel()
	return s.call(ctx, d)
}

func settleAck(t *env) {
	t.publish(t.p, t.some(5, work)...)
	w := t.subscribeFor(t.p, t.h.Lease, 5, work)
	for range 5 {
		t.ack(w.one())
	}
	w.nothingFor(t.h.Lease+quiet, "it was acknowledged")
	w.end()
	t.subscribe(t.open(), 5, work).nothing("it was acknowledged")
}

func settleOnce(t *env) {
	for _, s := range t.settlements() {
		queue := "once-" + s.name
		t.publish(t.p, t.job(queue))
		d := t.subscribe(t.p, 1, queue).one()
		if err := t.settle(s, d); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		if err := t.settle(s, d); !errors.Is(err, provider.ErrSettled) {
			t.Errorf("%s after %s: %v; want ErrSettled", s.name, s.name, err)
		}
	}
}

func settleKind(t *env) {
	for _, first := range t.settlements() {
		queue := "kind-" + first.name
		t.publish(t.p, t.job(queue))
		d := t.subscribe(t.p, 1, queue).one()
		if err := t.settle(first, d); err != nil {
			t.Errorf("%s: %v", first.name, err)
		}
		for _, second := range t.settlements() {
			if second.name == first.name {
				continue
			}
			if err := t.settle(second, d); !errors.Is(err, provider.ErrSettled) {
				t.Errorf("%s after %s: %v; want ErrSettled", second.name, first.name, err)
			}
		}
	}
}

func settleRace(t *env) {
	const rounds = 20
	next := make(map[string]bool)
	w := t.subscribe(t.p, 2*rounds, work, other)
	for i := range rounds {
		t.publish(t.p, t.job(work))
		d := w.receiveFrom(1, work)[0]
		child := t.job(other)
		var won atomic.Int64
		var wg sync.WaitGroup
		race := func(name string, settle func(ctx context.Context) error) {
			for range 2 {
				wg.Go(func() {
					ctx, cancel := t.ctx()
					defer cancel()
					switch err := settle(ctx); {
					case err == nil && name == "Ack":
						won.Or(1)
					case err == nil:
						won.Or(2)
					case !errors.Is(err, provider.ErrSettled):
						t.Errorf("%s: %v; want nil or ErrSettled", name, err)
					}
				})
			}
		}
		ack := func() { race("Ack", func(ctx context.Context) error { return d.Ack(ctx, []provider.Job{child}) }) }
		dead := func() { race("DeadLetter", func(ctx context.Context) error { return d.DeadLetter(ctx, failure(1)) }) }
		if i%2 == 0 {
			ack, dead = dead, ack
		}
		ack()
		dead()
		wg.Wait()
		switch won.Load() {
		case 1:
			next[child.ID] = true
		case 2:
		default:
			t.Errorf("Ack and DeadLetter of one delivery: winners %02b; want one of the kinds", won.Load())
		}
	}
	for _, d := range w.during(quiet, rounds*2) {
		switch id := d.Job().ID; {
		case !next[id]:
			t.Errorf("%s was delivered, though its settlement had not won, or twice", id)
		default:
			delete(next, id)
		}
		t.ack(d)
	}
	for id := range next {
		t.Errorf("%s is the next job of an Ack that won, and was not delivered", id)
	}
}

func settleEnded(t *env) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	lease := max(t.h.Lease, 5*time.Second)
	var done []*sub
	for _, s := range t.settlements() {
		queue := "ended-" + s.name
		t.publish(t.p, t.job(queue))
		w := t.subscribeFor(t.p, lease, 1, queue)
		d := w.one()
		err := s.call(ended, d)
		if errors.Is(err, provider.ErrSettled) || errors.Is(err, provider.ErrLeaseLost) {
			t.Errorf("%s with an ended context: %v; want nil or that it is not known", s.name, err)
		}
		if err != nil {
			// By now the first call may have been put on record after all.
			err = t.settle(s, d)
		}
		if err != nil && !errors.Is(err, provider.ErrSettled) && !errors.Is(err, provider.ErrLeaseLost) {
			t.Errorf("%s again: %v", s.name, err)
		}
		if s.name == "Ack" || s.name == "DeadLetter" {
			done = append(done, w)
		}
	}
	time.Sleep(lease)
	for _, w := range done {
		w.nothingFor(time.Second, "its settlement was called again until it was on record")
	}
}

func settleNext(t *env) {
	parent := t.job(work)
	t.publish(t.p, parent)
	w := t.subscribe(t.p, 5, work, other)
	next := []provider.Job{t.job(other), t.full(work), t.job(other), t.job("elsewhere")}
	t.ackWith(w.one(), next...)
	got := byID(append(w.receive(3), t.subscribe(t.open(), 1, "elsewhere").one()))
	for _, j := range next {
		if got[j.ID] == nil {
			t.Fatalf("next job %s was not delivered", j.ID)
		}
		t.same("next job "+j.ID, got[j.ID].Job(), &j)
		t.ack(got[j.ID])
	}
	w.nothing("the job and its next jobs are done")
}

func settleNextDelayed(t *env) {
	t.promote(t.p)
	t.publish(t.p, t.job(work))
	w := t.subscribe(t.p, 5, work)
	later := t.job(work, delayed(2*time.Second))
	start := time.Now()
	t.ackWith(w.one(), later)
	d := w.one()
	t.notEarly(d, start, 2*time.Second)
	t.same("delayed next job", d.Job(), &later)
	t.ack(d)
}

// notEarly checks that a delivery that has just come waited for its time.
func (t *env) notEarly(d provider.Delivery, start time.Time, delay time.Duration) {
	t.Helper()
	if waited := time.Since(start); waited < delay-t.finest() {
		t.Errorf("%s came after %v; want %v (DelayFacts.Finest: %v)", d.Job().ID, waited, delay, t.finest())
	}
}

// promoteOwn promotes while retries wait in Delays of the provider's own.
func (t *env) promoteOwn() {
	if t.p.Delays != nil && t.round == own {
		t.promote(t.p)
	}
}

func settleRetry(t *env) {
	t.promoteOwn()
	j := t.job(work)
	t.publish(t.p, j)
	w := t.subscribe(t.p, 1, work)
	want := j
	for n := int32(1); n <= 3; n++ {
		d := w.one()
		t.same(fmt.Sprintf("run %d", n), d.Job(), &want)
		again := provider.Again{Why: provider.FailedAgain, Failure: failure(n)}
		t.retry(d, again)
		want = want.After(again)
		want.Delay = 0
	}
	d := w.one()
	t.same("the last run", d.Job(), &want)
	t.ack(d)
	w.nothing("it is done")
}

func settleSnooze(t *env) {
	t.promoteOwn()
	j := t.job(work)
	t.publish(t.p, j)
	w := t.subscribe(t.p, 1, work)
	for _, why := range []provider.Why{provider.SnoozedAgain, provider.ParkedAgain, provider.SnoozedAgain} {
		t.retry(w.one(), provider.Again{Why: why})
	}
	d := w.one()
	want := j
	want.Counters.Snoozes, want.Counters.Parks = 2, 1
	t.same("after two snoozes and a park", d.Job(), &want)
	t.ack(d)
}

func settleRetryWaits(t *env) {
	t.promoteOwn()
	t.publish(t.p, t.job(work))
	w := t.subscribe(t.p, 1, work)
	for _, delay := range []time.Duration{time.Second, 2 * time.Second} {
		d := w.one()
		start := time.Now()
		t.retry(d, provider.Again{Why: provider.SnoozedAgain, After: delay})
		d = w.one()
		t.notEarly(d, start, delay)
		t.retry(d, provider.Again{Why: provider.SnoozedAgain})
	}
	t.ack(w.one())
}

func settleRetryEnd(t *env) {
	t.promoteOwn()
	greedy := t.job(work, func(j *provider.Job) { j.Task = "providertest.v1.Tasks.Greedy" })
	t.publish(t.p, greedy)
	rest := t.some(5, work)
	t.publish(t.p, rest...)
	w := t.subscribe(t.p, 1, work)
	others := 0
	for runs := 0; others < len(rest); {
		d := w.one()
		if d.Job().ID != greedy.ID {
			others++
			t.ack(d)
			continue
		}
		if runs++; runs > 200 {
			t.Fatalf("a job that was retried at once ran %d times while %d others waited", runs, len(rest)-others)
		}
		t.retry(d, provider.Again{Why: provider.SnoozedAgain})
	}
	t.ack(w.one())
}

func settleRetryKeeps(t *env) {
	t.promoteOwn()
	j := t.full(work)
	t.publish(t.p, j)
	w := t.subscribe(t.p, 1, work)
	for _, again := range []provider.Again{
		{Why: provider.FailedAgain, Failure: failure(2)},
		{Why: provider.SnoozedAgain, After: time.Second},
	} {
		t.retry(w.one(), again)
		j = j.After(again)
	}
	j.Delay = 0
	d := w.one()
	t.same("after two rewrites", d.Job(), &j)
	t.ack(d)
}

func settleStarted(t *env) {
	j := t.job(work)
	t.publish(t.p, j)
	w := t.subscribe(t.p, 1, work)
	d := w.one()
	if d.Job().Counters.RecordedStart() {
		t.Errorf("a new job is a recorded start: %+v", d.Job().Counters)
	}
	t.retry(d, provider.Again{Why: provider.StartedAgain})
	d = w.one()
	if c := d.Job().Counters; c.Starts != 1 || !c.RecordedStart() {
		t.Errorf("the copy of a start put on record: %+v; want it known as such", c)
	}
	t.ack(d)
	w.nothing("it is done")
}

func settleRelease(t *env) {
	j := t.full(work)
	t.publish(t.p, j)
	first := t.subscribe(t.p, 1, work)
	second := t.subscribe(t.open(), 1, work)
	t.release(first.one())
	first.end()
	d := second.one()
	t.same("a released job", d.Job(), &j)
	t.ack(d)
	second.nothing("it is done")
}

func settleUnsettled(t *env) {
	jobs := t.some(5, work)
	t.publish(t.p, jobs...)
	first := t.subscribeFor(t.p, t.h.Lease, 5, work)
	first.receive(5)
	first.end()
	second := t.subscribe(t.open(), 5, work)
	ds := second.receive(5)
	t.once(ds)
	t.ack(ds...)
	second.nothing("all are done")
}

func settleMany(t *env) {
	const jobs = 300
	t.publish(t.p, t.some(jobs, work)...)
	lease := max(t.h.Lease, 10*time.Second)
	w := t.subscribeFor(t.p, lease, jobs, work)
	var wg sync.WaitGroup
	children := make(map[string]bool)
	for i, d := range w.receive(jobs) {
		var next []provider.Job
		if i%3 == 0 {
			next = t.some(1, other)
			children[next[0].ID] = true
		}
		wg.Go(func() {
			ctx, cancel := t.ctx()
			defer cancel()
			if err := d.Ack(ctx, next); err != nil {
				t.Errorf("Ack of %s: %v", d.Job().ID, err)
			}
		})
	}
	wg.Wait()
	w.end()
	rest := t.subscribe(t.open(), len(children), work, other)
	ds := rest.receive(len(children))
	t.once(ds)
	for _, d := range ds {
		if !children[d.Job().ID] {
			t.Errorf("%s was acknowledged and is delivered again", d.Job().ID)
		}
	}
	t.ack(ds...)
	rest.nothingFor(lease+time.Second, "all are done")
}
