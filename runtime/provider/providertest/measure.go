package providertest

import (
	"errors"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// factsChecks measure the facts that no check of another subject measures.
func factsChecks() []check {
	return []check{
		{
			name: "facts/constant",
			rule: "Facts is constant, and says whose Delays and Claims are in use.",
			run:  factsConstant,
		}, {
			name: "facts/death",
			rule: "Death is LeaseOnRecord if a delivery may be taken over when its lease has run out without a heartbeat, and Session if it belongs to a connection or membership and returns when that ends.",
			run:  factsDeath,
		}, {
			name:  "facts/exact crashes",
			rule:  "ExactCrashes says that Counters.Crashes is exact: deliveries that never started do not count.",
			needs: []need{needCrash, needExactCrashes},
			run:   factsCrashes,
		}, {
			name:  "facts/atomic handoff",
			rule:  "AtomicHandoff says that Ack stores the next jobs and ends the job in one step: if it cannot end the job it stores none.",
			needs: []need{needCrash, needAtomic},
			run:   factsAtomic,
		}, {
			name:  "facts/retries",
			rule:  "Retries says which jobs Delivery.Retry can take while Delays is nil or lent.",
			needs: []need{needRetries},
			run:   factsRetries,
		}, {
			name: "facts/slots",
			rule: "A lane's slots bind only where FixedSlots is true.",
			run:  factsSlots,
		}, {
			name:  "facts/confirmed",
			rule:  "Confirmed says that a nil settlement is on the broker's record, so that not even its crash brings the job back.",
			needs: []need{needConfirmed},
			run:   factsConfirmed,
		}, {
			name:  "facts/carried",
			rule:  "What was published, and what a settlement carried (next jobs, the copy of a retry or of a dead letter), is on record and outlives a crash of the broker, whether Confirmed or not.",
			needs: []need{needBrokerCrash},
			run:   factsCarried,
		},
	}
}

func needExactCrashes(t *env) string {
	if !t.facts().ExactCrashes {
		return "absent: crashes are an upper bound (JobFacts.ExactCrashes)"
	}
	return ""
}

func needAtomic(t *env) string {
	if !t.facts().AtomicHandoff {
		return "absent: next jobs are published first (JobFacts.AtomicHandoff)"
	}
	return ""
}

func needRetries(t *env) string {
	if t.facts().Retries == provider.RetriesNone {
		return "absent: no job is retried without Delays (JobFacts.Retries)"
	}
	return ""
}

func needConfirmed(t *env) string {
	if !t.facts().Confirmed {
		return "absent: a settlement is sent and not confirmed (JobFacts.Confirmed)"
	}
	return needBrokerCrash(t)
}

func needBrokerCrash(t *env) string {
	if t.h.Crash == nil {
		return "not measured here: the harness has no Crash"
	}
	return ""
}

func factsConstant(t *env) {
	f := t.facts()
	if f != t.open().Jobs.Facts() || f != t.facts() {
		t.Errorf("JobFacts are not always the same")
	}
	if f.Death != provider.LeaseOnRecord && f.Death != provider.Session {
		t.Errorf("JobFacts.Death is %d; want LeaseOnRecord or Session", f.Death)
	}
	if t.p.Name == "" || t.p.Events == nil || t.p.Health == nil || t.p.Close == nil {
		t.Errorf("name, Events, Health or Close is missing: %+v", t.p)
	}
	if d := t.p.Delays; d != nil {
		first, second := d.Facts(), d.Facts()
		if first.Lent != (t.round == lent) || first != second || first.Finest < 0 {
			t.Errorf("DelayFacts in the round %q: %+v, then %+v", t.round, first, second)
		}
	}
	if c := t.p.Claims; c != nil {
		first, second := c.Facts(), c.Facts()
		if first.Lent != (t.round == lent) || first != second {
			t.Errorf("ClaimFacts in the round %q: %+v, then %+v", t.round, first, second)
		}
	}
}

func factsDeath(t *env) {
	t.publish(t.p, t.job(work))
	w := t.subscribeFor(t.open(), t.h.Lease, 1, work)
	d := w.one()
	heir := t.subscribe(t.p, 1, work)
	if t.facts().Death == provider.LeaseOnRecord {
		again := heir.one() // though the session of the first goes on
		if again.Job().ID != d.Job().ID {
			t.Errorf("%s came; want the job whose lease ran out", again.Job().ID)
		}
		t.ack(again)
		return
	}
	heir.nothingFor(t.h.Lease+takeOver, "its session goes on")
	t.ack(d)
}

func factsCrashes(t *env) {
	const jobs = 10
	t.publish(t.p, t.some(jobs, work)...)
	doomed := t.open()
	w := t.subscribeFor(doomed, t.h.Lease, jobs, work)
	started := w.one().Job().ID
	time.Sleep(50 * time.Millisecond) // whoever reads ahead has time to
	t.die(doomed)
	for _, d := range t.subscribe(t.p, jobs, work).receive(jobs) {
		want := int32(0)
		if d.Job().ID == started {
			want = 1
		}
		if got := d.Job().Counters.Crashes; got != want {
			t.Errorf("%s counts %d crashes; want %d: %s is the only one that its dead worker had started", d.Job().ID, got, want, started)
		}
		t.ack(d)
	}
}

func factsAtomic(t *env) {
	t.publish(t.p, t.job(work))
	old := t.open()
	stale := t.subscribeFor(old, t.h.Lease, 1, work).one()
	t.stall(old)
	w := t.subscribe(t.p, 2, work, other)
	fresh := w.one()
	ctx, cancel := t.ctx()
	defer cancel()
	err := stale.Ack(ctx, t.some(2, other))
	var lost *provider.LostError
	ended := t.facts().Death == provider.Session && errors.Is(err, provider.ErrClosed) // by Drop, for good
	if !ended && (!errors.As(err, &lost) || lost.Stored != provider.OutcomeRefused) {
		t.Errorf("Ack of a job that another worker has, in one step with its next jobs: %v; want a *LostError that says that they are refused", err)
	}
	w.nothing("the step was refused as a whole")
	t.ack(fresh)
}

func factsRetries(t *env) {
	p := t.p
	if t.round == own {
		p = t.open()
		p.Delays = nil // the fact is about a provider without
	}
	keys := []string{"a"}
	if t.facts().Retries == provider.RetriesAll {
		keys = append(keys, "")
	}
	for _, key := range keys {
		if key != "" && !t.facts().Ordered {
			continue
		}
		t.publish(p, t.job(work, ordered(key)))
		w := t.subscribe(p, 1, work)
		d := w.one()
		start := time.Now()
		t.retry(d, provider.Again{Why: provider.FailedAgain, After: time.Second, Failure: failure(1)})
		d = w.one()
		t.notEarly(d, start, time.Second)
		if n := d.Job().Counters.Failures; n != 1 {
			t.Errorf("after a retry without Delays, ordering key %q: %d failures; want 1", key, n)
		}
		t.ack(d)
		w.end()
	}
}

func factsSlots(t *env) {
	t.publish(t.p, t.some(4, work)...)
	opts := t.options(longLease, 1, work, other)
	opts.MaxUnsettled = 4
	ctx, cancel := t.ctx()
	defer cancel()
	s, err := t.p.Jobs.Subscribe(ctx, opts)
	if err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	w := &sub{Subscription: s, t: t, lanes: []string{work, other}}
	defer w.end()
	if !t.facts().FixedSlots {
		t.ack(w.receive(4)...)
		return
	}
	d := w.one()
	w.nothing("its lane has one slot")
	t.ack(d)
	for range 3 {
		t.ack(w.one())
	}
}

func factsConfirmed(t *env) {
	const jobs = 50
	t.publish(t.p, t.some(jobs, work)...)
	w := t.subscribeFor(t.p, max(t.h.Lease, 10*time.Second), jobs, work)
	done := make(map[string]bool)
	for i, d := range w.receive(jobs) {
		if i%2 == 0 {
			t.ack(d)
			done[d.Job().ID] = true
		}
	}
	if err := t.h.Crash(); err != nil {
		t.Fatalf("crash of the broker: %v", err)
	}
	heir := t.subscribe(t.open(), jobs, work)
	w.end()
	for _, d := range heir.receive(jobs - len(done)) {
		if done[d.Job().ID] {
			t.Errorf("%s was acknowledged before the broker crashed, and is delivered again", d.Job().ID)
		}
		t.ack(d)
	}
	heir.nothing("all are done")
}

func factsCarried(t *env) {
	t.promoteOwn()
	t.publish(t.p, t.some(3, work)...)
	w := t.subscribe(t.p, 3, work)
	ds := w.receive(3)
	next := t.some(5, other)
	t.ackWith(ds[0], next...)
	want := tallyOf(next)
	if t.retries(false) {
		t.retry(ds[1], provider.Again{Why: provider.FailedAgain, Failure: failure(1)})
		want[ds[1].Job().ID]++
	}
	if t.p.Dead != nil {
		t.deadLetter(ds[2], failure(1))
	}
	last := t.some(5, other)
	t.publish(t.p, last...)
	if err := t.h.Crash(); err != nil {
		t.Fatalf("crash of the broker: %v", err)
	}
	for id := range tallyOf(last) {
		want[id]++
	}
	p := t.open()
	t.promoteWith(p, t.publisher(p))
	heir := t.subscribe(p, 20, work, other)
	for len(want) > 0 {
		d := heir.one() // perhaps one that was settled in the last moment
		delete(want, d.Job().ID)
		t.ack(d)
	}
	if t.p.Dead != nil && t.letterCountOf(p) != 1 {
		t.Errorf("there are %d dead letters after a crash of the broker; want 1", t.letterCountOf(p))
	}
}

func tallyOf(jobs []provider.Job) map[string]int {
	n := make(map[string]int)
	for _, j := range jobs {
		n[j.ID]++
	}
	return n
}
