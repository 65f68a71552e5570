package providertest

import (
	"fmt"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func delaysChecks() []check {
	all := []check{
		{
			name: "delays/never early",
			rule: "Hold keeps the jobs until due: Job.Delay from now, by the store's clock; a job is never early by more than DelayFacts.Finest, and never lost.",
			run:  delaysEarly,
		}, {
			name:  "delays/publish holds",
			rule:  "While Provider.Delays is the provider's own, Publish holds jobs with a Delay by itself.",
			needs: []need{needOwnDelays},
			run:   delaysPublish,
		}, {
			name:  "delays/something around them",
			rule:  "Delays and Claims are lent if their Facts say so, and the provider's own if not: Publish goes on to hold and to claim when something is put around them.",
			needs: []need{needOwnDelays},
			run:   delaysAround,
		}, {
			name: "delays/whole record",
			rule: "Every rewrite keeps all fields, those of a newer version included: so does a hold.",
			run:  delaysWhole,
		}, {
			name:  "delays/replace",
			rule:  "A copy that is held already (Job.SameStamp) is replaced where Facts says Addressable; one in another state is another.",
			needs: []need{needAddressable},
			run:   delaysReplace,
		}, {
			name:  "delays/cancel",
			rule:  "Cancel removes the held jobs with this id that have not started and reports whether there were any.",
			needs: []need{needAddressable},
			run:   delaysCancel,
		}, {
			name:  "delays/no cancel",
			rule:  "Where Facts does not say Addressable, Cancel returns false.",
			needs: []need{needNotAddressable},
			run:   delaysNoCancel,
		}, {
			name: "delays/held",
			rule: "Held returns how many jobs of a queue wait for their time; unknown where Facts says that they cannot be counted.",
			run:  delaysHeld,
		}, {
			name: "delays/longest",
			rule: "DelayFacts.Longest is the longest delay; zero: no bound. A longer one is refused.",
			run:  delaysLongest,
		}, {
			name: "delays/many at once",
			rule: "Methods may be called from many goroutines at once: none of the jobs that they hold is lost.",
			run:  delaysMany,
		},
	}
	return withDelays(append(all, promoteChecks()...))
}

// withDelays are checks that need Delays, whatever else they need.
func withDelays(all []check) []check {
	for i := range all {
		all[i].needs = append([]need{needDelays}, all[i].needs...)
	}
	return all
}

func needAddressable(t *env) string {
	if !t.p.Delays.Facts().Addressable {
		return "absent: held jobs cannot be addressed (DelayFacts.Addressable)"
	}
	return ""
}

func needNotAddressable(t *env) string {
	if t.p.Delays.Facts().Addressable {
		return "absent: held jobs can be addressed (DelayFacts.Addressable)"
	}
	return ""
}

func delaysEarly(t *env) {
	t.promote(t.p)
	delays := make(map[string]time.Duration)
	start := time.Now()
	for i := range 30 {
		j := t.job(work, delayed(time.Duration(i%10)*300*time.Millisecond+time.Duration(i)*time.Millisecond))
		delays[j.ID] = j.Delay
		t.hold(t.p, j)
	}
	w := t.subscribe(t.p, 30, work)
	var got []provider.Delivery
	for len(got) < len(delays) {
		d := w.one()
		t.notEarly(d, start, delays[d.Job().ID])
		got = append(got, d)
	}
	t.once(got)
	t.ack(got...)
	w.nothing("all came")
}

func delaysPublish(t *env) {
	t.promote(t.p)
	later, now := t.job(work, delayed(2*time.Second)), t.job(work)
	start := time.Now()
	t.publish(t.p, later, now)
	w := t.subscribe(t.p, 2, work)
	if d := w.one(); d.Job().ID != now.ID {
		t.Errorf("a job with a delay came before one without")
		t.notEarly(d, start, 2*time.Second)
	} else {
		t.ack(d)
		d = w.one()
		t.notEarly(d, start, 2*time.Second)
		t.same("a job that was published with a delay", d.Job(), &later)
		t.ack(d)
	}
	w.nothing("all came")
}

func delaysAround(t *env) {
	t.p.Delays = struct{ provider.Delays }{t.p.Delays}
	first, second := t.job(work, delayed(time.Second)), t.job(work, delayed(time.Second))
	if t.p.Claims != nil {
		t.p.Claims = struct{ provider.Claims }{t.p.Claims}
		first.Dedupe = provider.Dedupe{Key: "key", For: time.Hour}
		second.Dedupe = first.Dedupe
	}
	t.promote(t.p)
	start := time.Now()
	t.outcome("Publish with something around Delays", t.tryPublish(t.p, first)[0], provider.OutcomeStored)
	if t.p.Claims != nil {
		t.outcome("Publish with something around Claims, and a key that is claimed", t.tryPublish(t.p, second)[0], provider.OutcomeDuplicate)
	}
	w := t.subscribe(t.p, 1, work)
	d := w.one()
	t.notEarly(d, start, time.Second)
	t.ack(d)
}

func delaysWhole(t *env) {
	t.promote(t.p)
	j := t.full(work)
	j.Delay = time.Second
	t.hold(t.p, j)
	d := t.subscribe(t.p, 1, work).one()
	t.same("a job that was held", d.Job(), &j)
	t.ack(d)
}

func delaysReplace(t *env) {
	j := t.job(work, delayed(time.Second))
	t.hold(t.p, j)
	again := j
	again.Delay, again.Payload = 3*time.Second, []byte("the new one")
	start := time.Now()
	t.hold(t.p, again)
	failed := j.After(provider.Again{Why: provider.FailedAgain, After: time.Second, Failure: failure(1)})
	t.hold(t.p, failed)
	t.promote(t.p)
	w := t.subscribe(t.p, 5, work)
	d := w.one()
	t.same("a copy in another state", d.Job(), &failed)
	t.ack(d)
	d = w.one()
	t.notEarly(d, start, 3*time.Second)
	t.same("the copy that replaced the first", d.Job(), &again)
	t.ack(d)
	w.nothing("a held copy of the same state is replaced")
}

func delaysCancel(t *env) {
	j, bystander := t.job(work, delayed(time.Second)), t.job(work, delayed(time.Second))
	t.hold(t.p, j, bystander)
	if !t.cancel(t.open(), j.ID) {
		t.Errorf("Cancel of a held job found nothing")
	}
	if t.cancel(t.p, j.ID) {
		t.Errorf("Cancel found a job that was cancelled")
	}
	if t.cancel(t.p, "unknown") {
		t.Errorf("Cancel found a job that never was")
	}
	t.promote(t.p)
	w := t.subscribe(t.p, 2, work)
	d := w.one()
	if d.Job().ID != bystander.ID {
		t.Errorf("%s was delivered; it was cancelled", d.Job().ID)
	}
	if t.cancel(t.p, bystander.ID) {
		t.Errorf("Cancel found a job that has started")
	}
	t.ack(d)
	w.nothingFor(time.Second+quiet, "it was cancelled")
}

func delaysNoCancel(t *env) {
	j := t.job(work, delayed(time.Second))
	t.hold(t.p, j)
	if t.cancel(t.p, j.ID) {
		t.Errorf("Cancel says that it removed a job, which Facts says it cannot")
	}
	t.promote(t.p)
	t.ack(t.subscribe(t.p, 1, work).one())
}

// held asks how many jobs are held.
func (t *env) held(d provider.Delays, queue string) provider.Measure[int64] {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	m, err := d.Held(ctx, queue)
	if err != nil {
		t.Fatalf("Held: %v", err)
	}
	return m
}

func delaysHeld(t *env) {
	t.hold(t.p, t.some(3, work, delayed(time.Hour))...)
	t.hold(t.p, t.some(2, other, delayed(time.Hour))...)
	if !t.p.Delays.Facts().Countable {
		if _, known := t.held(t.p.Delays, work).Get(); known {
			t.Errorf("Held is known, which Facts says it is not")
		}
		return
	}
	for queue, want := range map[string]int64{work: 3, other: 2, "empty": 0} {
		t.until(fmt.Sprintf("Held of queue %s is %d", queue, want), func() bool {
			n, known := t.held(t.p.Delays, queue).Get()
			return known && n == want
		})
	}
}

func delaysLongest(t *env) {
	longest := t.p.Delays.Facts().Longest
	most := longest
	if longest == 0 {
		most = 50 * 365 * 24 * time.Hour
	}
	t.hold(t.p, t.job(work, delayed(most)))
	t.promote(t.p)
	w := t.subscribe(t.p, 1, work)
	w.nothing("it has the longest delay")
	if longest == 0 {
		return
	}
	ctx, cancel := t.ctx()
	defer cancel()
	t.outcome("Hold for longer than the longest delay", t.p.Delays.Hold(ctx, t.some(1, work, delayed(longest+time.Hour)))[0], provider.OutcomeRefused)
}

func delaysMany(t *env) {
	const callers, each = 16, 20
	p2 := t.open()
	t.promote(t.p)
	t.promote(p2)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			p := t.p
			if c%2 == 1 {
				p = p2
			}
			for i := range each {
				j := t.job(work, delayed(time.Duration(i)*50*time.Millisecond))
				ctx, cancel := t.ctx()
				if s := p.Delays.Hold(ctx, []provider.Job{j}); len(s) != 1 || s[0].Outcome != provider.OutcomeStored {
					t.Errorf("Hold of %s: %+v; want it stored", j.ID, s)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	w := t.subscribe(t.p, callers*each, work)
	got := make(map[string]bool)
	for len(got) < callers*each {
		for _, d := range w.receive(1) {
			got[d.Job().ID] = true
			t.ack(d)
		}
	}
}
