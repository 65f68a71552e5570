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

func promoteChecks() []check {
	return []check{
		{
			name: "delays/promote ends",
			rule: "Promote moves due jobs until ctx ends, and then returns nil.",
			run:  delaysPromoteEnds,
		}, {
			name:  "delays/forgotten when stored",
			rule:  "A due job is forgotten only after publish said stored or duplicate.",
			needs: []need{needPublishing},
			run:   delaysForgotten,
		}, {
			name:  "delays/told when forgotten",
			rule:  "The context that publish is given ends soon after its answer: once what was stored is forgotten.",
			needs: []need{needPublishing},
			run:   delaysTold,
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
		},
	}
}

// needPublishing is for what is seen only in the publish that Promote is given.
func needPublishing(t *env) string {
	if t.round == own {
		return "absent: the provider promotes into its own queues"
	}
	return ""
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

func delaysTold(t *env) {
	t.hold(t.p, t.job(work, delayed(time.Second)))
	told := make(chan provider.Measure[int64], 1)
	t.promoteWith(t.p, func(ctx context.Context, due []provider.Job) []provider.Stored {
		context.AfterFunc(ctx, func() {
			held, err := t.p.Delays.Held(t.Context(), work)
			if err == nil {
				told <- held
			}
		})
		return t.p.Jobs.Publish(ctx, due, provider.PublishOptions{Accepted: true})
	})
	select {
	case held := <-told:
		if n, known := held.Get(); known && n != 0 {
			t.Errorf("the context of publish has ended and %d jobs are held; want none", n)
		}
	case <-time.After(t.patience):
		t.Errorf("the context of publish goes on after its answer")
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

// promotionLog is where promoters publish jobs with ordering keys: it does not
// store each at its first try, and writes down in which order it did.
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
