package providertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func leaseChecks() []check {
	return []check{
		{
			name:  "lease/takeover",
			rule:  "A dead worker's jobs are taken over within one lease plus five seconds, inside a Receive that blocks; the crash counts, and not as a failure.",
			needs: []need{needCrash},
			run:   leaseTakeover,
		}, {
			name:  "lease/takeover of many",
			rule:  "All that a dead worker left is taken over within one lease plus five seconds by workers with free slots, not some of it.",
			needs: []need{needCrash},
			run:   leaseTakeoverMany,
		}, {
			name:  "lease/takeover ahead of the lanes",
			rule:  "What a dead worker left in these lanes is taken over at least every two seconds, blocked or not, ahead of the lanes' order.",
			needs: []need{needCrash, needSharedSlots},
			run:   leaseTakeoverAhead,
		}, {
			name:  "lease/crashes add up",
			rule:  "Crashes counts runs that never reached an outcome because their worker died; every rewrite folds in what the broker counted.",
			needs: []need{needCrash, needRetry},
			run:   leaseCrashes,
		}, {
			name: "lease/heartbeat keeps",
			rule: "Extend is the heartbeat of deliveries: their leases start again, so that a slow job stays with its worker.",
			run:  leaseKeeps,
		}, {
			name: "lease/of its own",
			rule: "SubscribeOptions.Lease is how long a delivery is ours without a heartbeat, whatever lease others have.",
			run:  leaseOwn,
		}, {
			name:  "lease/stale settlement",
			rule:  "Nobody fences by owner alone: a settlement of an older run never touches a newer run elsewhere. Where JobFacts.RefusesLate is true it returns a *LostError that says what became of the jobs it carried.",
			needs: []need{needCrash},
			run:   leaseStale,
		}, {
			name:  "lease/stale settlement in one worker",
			rule:  "A settlement of an older run never touches a newer run of the same job in the same worker.",
			needs: []need{needLeaseOnRecord},
			run:   leaseStaleSame,
		}, {
			name:  "lease/stale heartbeat",
			rule:  "A heartbeat never takes a job back: Extend returns ErrLeaseLost for a delivery that is no longer ours, and Lost is closed by then.",
			needs: []need{needCrash},
			run:   leaseStaleHeartbeat,
		}, {
			name:  "lease/stale heartbeat in one worker",
			rule:  "A heartbeat of an older run never touches a newer run of the same job in the same worker.",
			needs: []need{needLeaseOnRecord},
			run:   leaseStaleHeartbeatSame,
		}, {
			name: "lease/heartbeat of settled jobs",
			rule: "Extend gives one error for each, in order: ErrSettled or nil, never ErrLeaseLost, for one whose settlement is on record or under way.",
			run:  leaseSettled,
		},
	}
}

func needLeaseOnRecord(t *env) string {
	if t.facts().Death != provider.LeaseOnRecord {
		return "absent: a worker keeps its deliveries as long as its session (JobFacts.Death)"
	}
	return ""
}

// die kills the worker that lives in a provider, with all that it holds.
func (t *env) die(p *provider.Provider) {
	if t.h.Drop != nil {
		t.h.Drop(p)
	}
	// Without Drop there is no heartbeat from now on, which is as good.
}

// stall keeps a worker silent until others may have what it holds. Its calls go
// through where leases are on record.
func (t *env) stall(p *provider.Provider) {
	if t.facts().Death != provider.LeaseOnRecord {
		t.h.Drop(p)
	}
}

// crashed checks how a run of a job that crashed n times is counted.
func (t *env) crashed(d provider.Delivery, n int32) {
	t.Helper()
	got := d.Job().Counters.Crashes
	if got < n || t.facts().ExactCrashes && got > n {
		t.Errorf("%s after %d crashes: it counts %d", d.Job().ID, n, got)
	}
}

func leaseTakeover(t *env) {
	doomed := t.open()
	w := t.subscribe(t.p, 1, work)
	first := t.subscribeFor(doomed, t.h.Lease, 1, other)
	j := t.full(other)
	j.Counters.Crashes = 0
	t.publish(t.p, j)
	first.one()
	heir := t.subscribe(t.p, 1, other)
	came := make(chan provider.Delivery, 1)
	t.start(func() {
		ctx, cancel := t.ctx()
		defer cancel()
		if ds, _ := heir.Receive(ctx, heir.lanes, 1); len(ds) == 1 {
			came <- ds[0]
		}
	})
	died := time.Now()
	t.die(doomed)
	bound := t.slack(t.h.Lease + takeOver)
	select {
	case d := <-came:
		t.crashed(d, 1)
		want := j
		want.Counters.Crashes = d.Job().Counters.Crashes
		t.same("a job that was taken over", d.Job(), &want)
		t.ack(d)
	case <-time.After(bound):
		t.Fatalf("nobody took over within %v of the death of a worker with a lease of %v", time.Since(died), t.h.Lease)
	}
	heir.nothing("it is done")
	w.nothing("this lane is empty")
}

func leaseTakeoverMany(t *env) {
	const jobs = 150
	doomed := t.open()
	t.publish(t.p, t.some(jobs, work)...)
	t.subscribeFor(doomed, t.h.Lease, jobs, work).receive(jobs)
	t.die(doomed)
	deadline := time.Now().Add(t.slack(t.h.Lease + takeOver))
	heir := t.subscribe(t.p, jobs, work) // settling takes a busy disk's time, and is not what is measured
	var got []provider.Delivery
	for len(got) < jobs {
		ds := heir.during(time.Until(deadline), min(20, jobs-len(got)))
		if len(ds) == 0 {
			t.Fatalf("%d of %d jobs of a dead worker were taken over within %v", len(got), jobs, t.h.Lease+takeOver)
		}
		got = append(got, ds...)
	}
	t.once(got)
	for _, d := range got {
		t.crashed(d, 1)
		t.ack(d)
	}
}

func leaseTakeoverAhead(t *env) {
	doomed := t.open()
	t.publish(t.p, t.job(other))
	left := t.subscribeFor(doomed, t.h.Lease, 1, other).one().Job().ID
	t.die(doomed)
	deadline := time.Now().Add(t.slack(t.h.Lease + takeOver))
	heir := t.subscribe(t.p, 10, work, other)
	t.publish(t.p, t.some(5, work)...)
	for {
		d := heir.one()
		if d.Job().ID == left {
			t.ack(d)
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a dead worker's job in the second lane was not taken over within %v while the first lane was busy", t.h.Lease+takeOver)
		}
		t.publish(t.p, t.job(work))
		time.Sleep(5 * time.Millisecond)
		t.ack(d)
	}
}

func leaseCrashes(t *env) {
	t.promoteOwn()
	t.publish(t.p, t.job(work))
	crash := func() {
		p := t.open()
		t.subscribeFor(p, t.h.Lease, 1, work).one()
		t.die(p)
	}
	take := func() provider.Delivery { return t.subscribe(t.p, 1, work).one() }
	crash()
	w := t.subscribe(t.p, 1, work)
	d := w.one()
	t.crashed(d, 1)
	t.retry(d, provider.Again{Why: provider.FailedAgain, Failure: failure(1)})
	d = w.one()
	t.crashed(d, 1)
	t.retry(d, provider.Again{Why: provider.SnoozedAgain})
	w.end()
	crash()
	d = take()
	t.crashed(d, 2)
	if c := d.Job().Counters; c.Failures != 1 || c.Snoozes != 1 {
		t.Errorf("after a failure, a snooze and two crashes: %+v", c)
	}
	if t.p.Dead == nil {
		t.ack(d)
		return
	}
	was := d.Job().Counters.Crashes
	t.deadLetter(d, failure(2))
	if got := t.letters(t.p, provider.DeadFilter{})[0].Job.Counters.Crashes; got != was {
		t.Errorf("a job with %d crashes has %d among the dead letters", was, got)
	}
}

func leaseKeeps(t *env) {
	lease := max(t.h.Lease, 5*time.Second) // so that a slow machine keeps it, too
	t.publish(t.p, t.some(3, work)...)
	w := t.subscribeFor(t.p, lease, 3, work)
	ds := w.receive(3)
	ctx, cancel := context.WithCancel(t.Context())
	var beats sync.WaitGroup
	beats.Go(func() {
		for ctx.Err() == nil {
			for i, err := range t.extend(w, ds...) {
				if err != nil {
					t.Errorf("Extend of %s: %v", ds[i].Job().ID, err)
				}
			}
			select {
			case <-time.After(lease / 5):
			case <-ctx.Done():
			}
		}
	})
	rival := t.subscribe(t.open(), 3, work)
	rival.nothingFor(2*lease, "a heartbeat kept it")
	cancel()
	beats.Wait()
	t.ack(ds...)
}

func leaseOwn(t *env) {
	t.publish(t.p, t.job(work))
	d := t.subscribe(t.p, 1, work).one()
	rival := t.subscribeFor(t.open(), t.h.Lease, 1, work)
	rival.nothingFor(2*t.h.Lease+time.Second, "its lease is a long one")
	t.ack(d)
}

func leaseStale(t *env) {
	for _, s := range t.settlements() {
		queue := "stale-" + s.name
		t.publish(t.p, t.job(queue))
		old := t.open()
		stale := t.subscribeFor(old, t.h.Lease, 1, queue).one()
		t.stall(old)
		w := t.subscribe(t.p, 2, queue, other)
		fresh := w.one()
		t.crashed(fresh, 1)
		copies := t.refusesLate(s.name, t.settle(s, stale))
		t.survives(w, fresh, copies)
	}
	t.staleNext()
}

// staleNext checks what a late Ack says about its next jobs.
func (t *env) staleNext() {
	t.Helper()
	t.publish(t.p, t.job("stale-next"))
	old := t.open()
	stale := t.subscribeFor(old, t.h.Lease, 1, "stale-next").one()
	t.stall(old)
	w := t.subscribe(t.p, 2, "stale-next", other)
	fresh := w.one()
	child := t.job(other)
	copies := t.refusesLate("Ack with a next job", t.settle(settlement{call: func(ctx context.Context, d provider.Delivery) error {
		return d.Ack(ctx, []provider.Job{child})
	}}, stale))
	t.survives(w, fresh, copies)
}

// refusesLate checks the answer to a late settlement and returns what it says
// about the jobs that were carried.
func (t *env) refusesLate(call string, err error) provider.Outcome {
	t.Helper()
	if err == nil && !t.facts().RefusesLate {
		return provider.OutcomeUnknown
	}
	if err != nil && t.facts().Death == provider.Session && errors.Is(err, provider.ErrClosed) {
		return provider.OutcomeUnknown // what Drop ended may be closed for good
	}
	var lost *provider.LostError
	if !errors.Is(err, provider.ErrLeaseLost) || !errors.As(err, &lost) {
		t.Errorf("%s of an older run: %v; want a *LostError", call, err)
		return provider.OutcomeUnknown
	}
	return lost.Stored
}

// survives checks that a newer run is as it was, and that beside it there is what
// the late settlement said that it stored.
func (t *env) survives(w *sub, fresh provider.Delivery, copies provider.Outcome) {
	t.Helper()
	if err := t.extend(w, fresh)[0]; err != nil {
		t.Errorf("Extend of the newer run after a late settlement: %v", err)
	}
	beside := w.during(quiet, 1)
	switch {
	case copies == provider.OutcomeRefused && len(beside) > 0:
		t.Errorf("%s was stored by a late settlement that said it was not", names(beside))
	case copies == provider.OutcomeStored && len(beside) == 0 && t.letterCount() == 0:
		t.Errorf("a late settlement said that it stored a job, which is not there")
	}
	if n := t.letterCount(); copies == provider.OutcomeRefused && n > 0 {
		t.Errorf("there are %d dead letters after a late settlement that was refused", n)
	}
	t.ack(append(beside, fresh)...)
	w.nothing("the newer run was acknowledged")
}

// letterCount is how many dead letters there are, as far as can be seen.
func (t *env) letterCount() int { return t.letterCountOf(t.p) }

func (t *env) letterCountOf(p *provider.Provider) int {
	if p.Dead == nil {
		return 0
	}
	return len(t.letters(p, provider.DeadFilter{}))
}

// again lets a delivery's lease run out in a worker that takes the job again.
func (t *env) again(queue string) (w *sub, stale, fresh provider.Delivery) {
	t.Helper()
	t.publish(t.p, t.job(queue))
	w = t.subscribeFor(t.p, max(t.h.Lease, time.Second), 2, queue)
	return w, w.one(), w.one()
}

// finish acknowledges a job whose short lease a slow machine may have let run
// out once more.
func (t *env) finish(w *sub, d provider.Delivery) {
	t.Helper()
	for tries := 0; ; tries++ {
		err := t.settle(settlement{call: func(ctx context.Context, d provider.Delivery) error { return d.Ack(ctx, nil) }}, d)
		if err == nil {
			return
		}
		if !errors.Is(err, provider.ErrLeaseLost) || t.h.Simulated || tries == 5 {
			t.Fatalf("Ack of the newer run: %v", err)
		}
		d = w.one()
	}
}

func leaseStaleSame(t *env) {
	for _, s := range t.settlements() {
		w, stale, fresh := t.again("same-" + s.name)
		if stale.Job().ID != fresh.Job().ID {
			t.Fatalf("%s was delivered after %s; want the same job", fresh.Job().ID, stale.Job().ID)
		}
		t.refusesLate(s.name, t.settle(s, stale))
		t.finish(w, fresh)
		if t.h.Simulated {
			w.nothingFor(t.h.Lease+quiet, "the newer run was acknowledged")
		}
	}
}

func leaseStaleHeartbeat(t *env) {
	t.publish(t.p, t.job(work))
	old := t.open()
	s := t.subscribeFor(old, t.h.Lease, 1, work)
	stale := s.one()
	t.stall(old)
	w := t.subscribe(t.p, 1, work)
	fresh := w.one()
	ended := t.facts().Death == provider.Session // by Drop, perhaps for good
	if err := t.extend(s, stale)[0]; !errors.Is(err, provider.ErrLeaseLost) && !(ended && errors.Is(err, provider.ErrClosed)) {
		t.Errorf("Extend of a delivery that another worker took over: %v; want ErrLeaseLost", err)
	}
	if lost := stale.Lost(); lost != nil {
		select {
		case <-lost:
		case <-time.After(t.slack(time.Second)):
			t.Errorf("Extend said that the lease is lost, and Lost is not closed")
		}
	}
	if err := t.extend(w, fresh)[0]; err != nil {
		t.Errorf("Extend of the newer run after a stale heartbeat: %v", err)
	}
	if lost := fresh.Lost(); lost != nil {
		select {
		case <-lost:
			t.Errorf("Lost of the newer run is closed")
		default:
		}
	}
	t.ack(fresh)
	w.nothing("it is done")
}

func leaseStaleHeartbeatSame(t *env) {
	w, stale, fresh := t.again(work)
	errs := t.extend(w, stale, fresh)
	if !errors.Is(errs[0], provider.ErrLeaseLost) {
		t.Errorf("Extend of the older run in the same worker: %v; want ErrLeaseLost", errs[0])
	}
	if t.h.Simulated && errs[1] != nil {
		t.Errorf("Extend of the newer run beside it: %v", errs[1])
	}
	t.finish(w, fresh)
}

func leaseSettled(t *env) {
	const jobs = 100
	t.publish(t.p, t.some(jobs+1, work)...)
	w := t.subscribe(t.p, jobs+1, work)
	ds := w.receive(jobs + 1)
	open := ds[jobs]
	settled := func(when string, errs []error) {
		t.Helper()
		for i, err := range errs[:jobs] {
			if err != nil && !errors.Is(err, provider.ErrSettled) {
				t.Errorf("Extend of %s, %s: %v; want nil or ErrSettled", ds[i].Job().ID, when, err)
			}
		}
		if errs[jobs] != nil {
			t.Errorf("Extend of a running job beside settled ones: %v", errs[jobs])
		}
	}
	var wg sync.WaitGroup
	for _, d := range ds[:jobs] {
		wg.Go(func() {
			if err := d.Ack(t.Context(), nil); err != nil {
				t.Errorf("Ack: %v", err)
			}
		})
	}
	for range 10 {
		settled("with its settlement under way", t.extend(w, ds...))
	}
	wg.Wait()
	settled("settled", t.extend(w, ds...))
	if errs := t.extend(w); len(errs) != 0 {
		t.Errorf("Extend of nothing: %v", errs)
	}
	t.ack(open)
}
