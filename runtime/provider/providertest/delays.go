package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
			name: "delays/promote ends",
			rule: "Promote moves due jobs until ctx ends, and then returns nil.",
			run:  delaysPromoteEnds,
		}, {
			name:  "delays/forgotten when stored",
			rule:  "A due job is forgotten only after publish said stored or duplicate.",
			needs: []need{needPublishing},
			run:   delaysForgotten,
		}, {
			name:  "delays/held anew meanwhile",
			rule:  "A due job is forgotten only if it was not held anew meanwhile.",
			needs: []need{needPublishing, needAddressable},
			run:   delaysAnew,
		}, {
			name:  "delays/five promoters",
			rule:  "A due job is reserved for one promoter at a time: several may run at once, and publish hardly more than the jobs there are.",
			needs: []need{needPublishing},
			run:   delaysPromoters,
		}, {
			name:  "delays/promoters and keys",
			rule:  "Of the jobs of a queue that share an ordering key one is reserved at a time, and none before those that were due before it are forgotten.",
			needs: []need{needPublishing},
			run:   delaysPromotersKeys,
		}, {
			name:  "delays/promoter dies",
			rule:  "A due job is reserved under the store's lease: what a promoter does not answer for in time is promoted by another.",
			needs: []need{needPublishing},
			run:   delaysPromoterDies,
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

// needPublishing is for what is seen only in the publish that Promote is given.
func needPublishing(t *env) string {
	if t.round == own {
		return "absent: the provider promotes into its own queues"
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

func delaysPromoteEnds(t *env) {
	for _, wait := range []time.Duration{0, quiet} {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		returned := make(chan error, 1)
		t.start(func() { returned <- t.p.Delays.Promote(ctx, t.publisher(t.p)) })
		select {
		case err := <-returned:
			if err != nil || ctx.Err() == nil {
				t.Errorf("Promote: %v; want nil when its context ends, and not before", err)
			}
		case <-time.After(wait + t.slack(5*time.Second)):
			t.Errorf("Promote goes on after its context ended")
		}
		cancel()
	}
}

func delaysForgotten(t *env) {
	jobs := t.some(4, work, delayed(time.Second))
	t.hold(t.p, jobs...)
	var mu sync.Mutex
	tries := make(map[string]int)
	t.promoteWith(t.p, func(ctx context.Context, due []provider.Job) []provider.Stored {
		mu.Lock()
		defer mu.Unlock()
		stored := make([]provider.Stored, len(due))
		for i, j := range due {
			tries[j.ID]++
			stored[i] = provider.Stored{ID: j.ID, Outcome: provider.OutcomeStored}
			switch {
			case j.ID == jobs[1].ID && tries[j.ID] < 3:
				stored[i] = provider.Stored{ID: j.ID, Outcome: provider.OutcomeRefused, Err: errors.New("no")}
			case j.ID == jobs[2].ID && tries[j.ID] < 3:
				stored[i] = provider.Stored{ID: j.ID, Err: errors.New("not known")}
			case j.ID == jobs[3].ID:
				stored[i] = provider.Stored{ID: j.ID, Outcome: provider.OutcomeDuplicate, Holder: "another"}
			}
		}
		return stored
	})
	count := func(i int) int {
		mu.Lock()
		defer mu.Unlock()
		return tries[jobs[i].ID]
	}
	t.until("what publish refused or did not know is promoted again", func() bool { return count(1) >= 3 && count(2) >= 3 })
	time.Sleep(quiet)
	for i, want := range []int{1, 3, 3, 1} {
		if got := count(i); got != want {
			t.Errorf("job %d of stored, refused twice, unknown twice and duplicate was published %d times; want %d", i, got, want)
		}
	}
}

func delaysAnew(t *env) {
	j := t.job(work, delayed(time.Second))
	t.hold(t.p, j)
	anew := j
	anew.Payload = []byte("held anew")
	times := make(chan provider.Job, 10)
	var once sync.Once
	t.promoteWith(t.p, func(ctx context.Context, due []provider.Job) []provider.Stored {
		stored := make([]provider.Stored, len(due))
		for i, d := range due {
			once.Do(func() { t.p.Delays.Hold(ctx, []provider.Job{anew}) })
			times <- d
			stored[i] = provider.Stored{ID: d.ID, Outcome: provider.OutcomeStored}
		}
		return stored
	})
	for i, want := range []provider.Job{j, anew} {
		select {
		case got := <-times:
			got.Delay = 0
			t.same(fmt.Sprintf("promotion %d", i+1), &got, &want)
		case <-time.After(2 * t.patience):
			t.Fatalf("a job that was held anew while it was promoted is gone")
		}
	}
	select {
	case got := <-times:
		t.Errorf("%s was promoted a third time", got.ID)
	case <-time.After(2 * time.Second):
	}
}

func delaysPromoters(t *env) {
	const jobs = 1000
	t.hold(t.p, t.some(jobs, work, delayed(time.Second))...)
	var mu sync.Mutex
	seen := make(map[string]int)
	total := 0
	for range 5 {
		t.promoteWith(t.open(), func(ctx context.Context, due []provider.Job) []provider.Stored {
			stored := make([]provider.Stored, len(due))
			mu.Lock()
			defer mu.Unlock()
			for i, d := range due {
				seen[d.ID]++
				total++
				stored[i] = provider.Stored{ID: d.ID, Outcome: provider.OutcomeStored}
			}
			return stored
		})
	}
	t.until("all due jobs are promoted", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) == jobs
	})
	time.Sleep(quiet)
	mu.Lock()
	defer mu.Unlock()
	if total > jobs*105/100 {
		t.Errorf("five promoters published %d times for %d jobs; want at most 1.05 a job", total, jobs)
	}
}

// promotionLog is where promoters publish jobs with ordering keys: it does not store each
// at its first try, and writes down in which order it did.
type promotionLog struct {
	t     *env
	mu    sync.Mutex
	busy  map[string]bool
	tries map[string]int
	order map[string][]string
	count int
}

func (l *promotionLog) publish(_ context.Context, due []provider.Job) []provider.Stored {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range due {
		if l.busy[d.OrderingKey] {
			l.t.Errorf("two jobs of ordering key %s are promoted at once", d.OrderingKey)
		}
		l.busy[d.OrderingKey] = true
	}
	l.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	l.mu.Lock()
	stored := make([]provider.Stored, len(due))
	for i, d := range due {
		l.busy[d.OrderingKey] = false
		stored[i] = l.store(d)
	}
	return stored
}

// store decides about one job by its headers.
func (l *promotionLog) store(d provider.Job) provider.Stored {
	l.tries[d.ID]++
	if l.tries[d.ID] == 1 {
		switch d.Headers["at first"] {
		case "refused":
			return provider.Stored{ID: d.ID, Outcome: provider.OutcomeRefused, Err: errors.New("no")}
		case "unknown":
			return provider.Stored{ID: d.ID, Err: errors.New("not known")}
		}
	}
	l.order[d.OrderingKey] = append(l.order[d.OrderingKey], d.ID)
	l.count++
	return provider.Stored{ID: d.ID, Outcome: provider.OutcomeStored}
}

func delaysPromotersKeys(t *env) {
	const keys, each, promoters = 4, 6, 3
	l := &promotionLog{t: t, busy: make(map[string]bool), tries: make(map[string]int), order: make(map[string][]string)}
	want := make(map[string][]string)
	var jobs []provider.Job
	for i := range each {
		for k := range keys {
			key := fmt.Sprintf("promoted-%d", k)
			j := t.job(work, ordered(key), delayed(time.Second+time.Duration(i)*20*time.Millisecond))
			j.Headers = map[string]string{"at first": map[int]string{0: "refused", 9: "unknown", 14: "refused"}[i*keys+k]}
			jobs, want[key] = append(jobs, j), append(want[key], j.ID)
		}
	}
	t.hold(t.p, jobs...)
	for range promoters {
		t.promoteWith(t.open(), l.publish)
	}
	t.until("all due jobs are promoted", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.count >= len(jobs)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, ids := range want {
		if !slices.Equal(l.order[key], ids) {
			t.Errorf("jobs of ordering key %s were promoted in the order %q; want %q", key, l.order[key], ids)
		}
	}
}

func delaysPromoterDies(t *env) {
	t.hold(t.p, t.some(3, work, delayed(time.Second))...)
	hung := make(chan struct{})
	dead := t.promoteWith(t.open(), func(ctx context.Context, due []provider.Job) []provider.Stored {
		select {
		case hung <- struct{}{}:
		case <-ctx.Done():
		}
		<-ctx.Done()
		return make([]provider.Stored, len(due)) // not known
	})
	select {
	case <-hung:
	case <-time.After(t.patience):
		t.Fatalf("nothing was promoted within %v", t.patience)
	}
	// It holds what it reserved, and never answers while the other looks.
	t.promote(t.p)
	w := t.subscribe(t.p, 3, work)
	deadline := time.Now().Add(3 * t.patience)
	var got []provider.Delivery
	for len(tally(got)) < 3 {
		ds := w.during(time.Until(deadline), 3)
		if len(ds) == 0 {
			t.Fatalf("%d of 3 jobs came within %v while a promoter hung", len(tally(got)), 3*t.patience)
		}
		t.ack(ds...)
		got = append(got, ds...)
	}
	dead()
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
