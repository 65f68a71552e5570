package providertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func receiveChecks() []check {
	return []check{
		{
			name: "receive/max",
			rule: "Receive blocks until any lane has work, then returns between 1 and max deliveries.",
			run:  receiveMax,
		}, {
			name:  "receive/lane order",
			rule:  "Deliveries are taken from the lanes in the order given.",
			needs: []need{needSharedSlots},
			run:   receiveLaneOrder,
		}, {
			name: "receive/lane subset",
			rule: "lanes are a subset of those subscribed: nothing comes from the others.",
			run:  receiveSubset,
		}, {
			name: "receive/any lane wakes",
			rule: "Receive blocks until any lane has work, also with fewer slots than lanes.",
			run:  receiveWakes,
		}, {
			name: "receive/ends with its context",
			rule: "Receive returns within a second of ctx's end.",
			run:  receiveEnds,
		}, {
			name: "receive/loses nothing",
			rule: "Receive loses nothing when ctx ends; it may still return deliveries, with or without an error.",
			run:  receiveLosesNothing,
		}, {
			name: "receive/starts now",
			rule: "Receive returns deliveries that start now: what a worker did not ask for is there for the others, at the latest when its session ends.",
			run:  receiveStartsNow,
		}, {
			name: "receive/one worker each",
			rule: "A job is delivered to one worker at a time.",
			run:  receiveOneEach,
		}, {
			name: "receive/outlives subscribe",
			rule: "The subscription outlives the context of Subscribe.",
			run:  receiveOutlives,
		}, {
			name: "receive/setup",
			rule: "Subscribe fails with a *SetupError for what can never work: no lanes, more lanes than fixed slots, a lease shorter than the broker can do.",
			run:  receiveSetup,
		},
	}
}

// needSharedSlots is for what is impossible where each lane has its own.
func needSharedSlots(t *env) string {
	if t.facts().FixedSlots {
		return "absent: each lane has slots of its own (JobFacts.FixedSlots)"
	}
	return ""
}

func receiveMax(t *env) {
	jobs := t.some(30, work)
	t.publish(t.p, jobs[:15]...)
	t.publish(t.p, jobs[15:]...)
	w := t.subscribe(t.p, 30, work)
	var got []provider.Delivery
	for _, most := range []int{1, 2, 7} {
		ctx, cancel := t.ctx()
		ds, err := w.Receive(ctx, w.lanes, most)
		cancel()
		t.batch(ds, most)
		if len(ds) < 1 || err != nil {
			t.Fatalf("Receive of at most %d with many jobs ready: %d deliveries, %v", most, len(ds), err)
		}
		got = append(got, ds...)
	}
	t.once(append(got, w.receive(30-len(got))...))
}

func receiveLaneOrder(t *env) {
	w := t.subscribe(t.p, 10, work, other)
	for _, lanes := range [][]string{{work, other}, {other, work}} {
		t.publish(t.p, t.job(work), t.job(other), t.job(work), t.job(other))
		ds := w.receiveFrom(3, lanes...)
		for i, queue := range []string{lanes[0], lanes[0], lanes[1]} {
			if got := ds[i].Job().Queue; got != queue {
				t.Errorf("lanes %v: delivery %d is from %s; want %s", lanes, i, got, queue)
			}
		}
		t.ack(append(ds, w.one())...)
	}
}

func receiveSubset(t *env) {
	w := t.subscribe(t.p, 5, work, other)
	t.publish(t.p, t.some(3, work)...)
	t.publish(t.p, t.some(3, other)...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*quiet)
	defer cancel()
	var got []provider.Delivery
	for ctx.Err() == nil {
		ds, _ := w.Receive(ctx, []string{other}, 5)
		t.batch(ds, 5)
		got = append(got, ds...)
	}
	for _, d := range got {
		if d.Job().Queue != other {
			t.Errorf("lane %s was asked for and lane %s answered", other, d.Job().Queue)
		}
	}
	if rest := 6 - len(got); rest > 0 {
		got = append(got, w.receive(rest)...)
	}
	t.once(got)
}

func receiveWakes(t *env) {
	lanes := []string{"a", "b", "c", "d"}
	w := t.subscribe(t.p, 1, lanes...)
	for _, lane := range lanes {
		got := make(chan provider.Delivery, 1)
		t.start(func() {
			defer close(got)
			ctx, cancel := t.ctx()
			defer cancel()
			if ds, err := w.Receive(ctx, lanes, 1); len(ds) == 1 {
				got <- ds[0]
			} else {
				t.Errorf("Receive that waits on %v: %d deliveries, %v", lanes, len(ds), err)
			}
		})
		time.Sleep(20 * time.Millisecond) // let it block
		t.publish(t.p, t.job(lane))
		d, ok := <-got
		if !ok {
			t.Fatalf("a job for lane %s woke nobody", lane)
		}
		if d.Job().Queue != lane {
			t.Errorf("a job for lane %s came from lane %s", lane, d.Job().Queue)
		}
		t.ack(d)
	}
}

func receiveEnds(t *env) {
	w := t.subscribe(t.p, 1, work)
	for _, wait := range []time.Duration{0, 0, time.Millisecond, 50 * time.Millisecond, quiet} {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		returned := make(chan struct{})
		t.start(func() {
			defer close(returned)
			if ds, _ := w.Receive(ctx, w.lanes, 1); len(ds) > 0 {
				t.Errorf("Receive of an empty queue: %s", names(ds))
			}
		})
		<-ctx.Done()
		select {
		case <-returned:
		case <-time.After(t.slack(time.Second)):
			t.Errorf("Receive did not return within a second of its context's end")
			<-returned
		}
		cancel()
	}
	t.publish(t.p, t.job(work))
	t.ack(w.one())
}

// slack gives a slow machine more time than the contract does, where time is
// real.
func (t *env) slack(d time.Duration) time.Duration {
	if t.h.Simulated {
		return d
	}
	return d + 10*time.Second
}

func receiveLosesNothing(t *env) {
	const jobs = 300
	w := t.subscribe(t.p, 10, work)
	t.start(func() {
		for range jobs {
			ctx, cancel := t.ctx()
			j := t.job(work)
			if s := t.p.Jobs.Publish(ctx, []provider.Job{j}, provider.PublishOptions{}); len(s) != 1 || s[0].Outcome != provider.OutcomeStored {
				t.Errorf("Publish: %+v", s)
			}
			cancel()
			time.Sleep(time.Duration(rand.IntN(1500)) * time.Microsecond)
		}
	})
	got := make(map[string]int)
	for changed := time.Now(); len(got) < jobs; {
		if time.Since(changed) > t.patience {
			t.Fatalf("%d of %d jobs were delivered while calls of Receive were cut off at random", len(got), jobs)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(3000))*time.Microsecond)
		ds, err := w.Receive(ctx, w.lanes, 1+rand.IntN(3))
		t.batch(ds, 3)
		if err != nil && ctx.Err() == nil {
			t.Fatalf("Receive: %v", err)
		}
		cancel()
		for _, d := range ds {
			got[d.Job().ID]++
			changed = time.Now()
			if d.Job().Counters.Crashes > 0 {
				t.Errorf("%s was delivered and lost before: %+v", d.Job().ID, d.Job().Counters)
			}
			t.ack(d)
		}
	}
	for id, n := range got {
		if n > 1 {
			t.Errorf("%s was delivered %d times", id, n)
		}
	}
}

func receiveStartsNow(t *env) {
	t.publish(t.p, t.some(10, work)...)
	first := t.subscribe(t.p, 1, work)
	held := first.one()
	if t.facts().Death == provider.Session {
		// A share of the queue may be the first one's as long as its session goes on.
		t.ack(held)
		first.end()
	}
	second := t.subscribe(t.open(), 9, work)
	t.once(append(second.receive(9), held))
}

func receiveOneEach(t *env) {
	const jobs, workers = 200, 5
	t.publish(t.p, t.some(jobs, work)...)
	ctx, cancel := t.ctx()
	defer cancel()
	var mu sync.Mutex
	var got []provider.Delivery
	var wg sync.WaitGroup
	for i := range workers {
		p := t.p
		if i%2 == 1 {
			p = t.open()
		}
		w := t.subscribe(p, 10, work)
		wg.Go(func() {
			for ctx.Err() == nil {
				ds, err := w.Receive(ctx, w.lanes, 10)
				if err != nil && ctx.Err() == nil {
					t.Errorf("Receive: %v", err)
					return
				}
				for _, d := range ds {
					if err := d.Ack(t.Context(), nil); err != nil {
						t.Errorf("Ack: %v", err)
					}
				}
				mu.Lock()
				got = append(got, ds...)
				if len(got) >= jobs {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.once(got)
	if n := len(tally(got)); n != jobs {
		t.Errorf("%d of %d jobs were delivered", n, jobs)
	}
}

func receiveOutlives(t *env) {
	ctx, cancel := t.ctx()
	s, err := t.p.Jobs.Subscribe(ctx, t.options(longLease, 1, work))
	cancel()
	if err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	w := &sub{Subscription: s, t: t, lanes: []string{work}}
	time.Sleep(50 * time.Millisecond)
	t.publish(t.p, t.job(work))
	t.ack(w.one())
	w.end()
}

func receiveSetup(t *env) {
	lanes := func(n int) []string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("lane-%d", i)
		}
		return names
	}
	none := t.options(longLease, 1)
	t.refusesSetup("no lanes", none, true)
	tooMany := t.options(longLease, 1, lanes(3)...)
	tooMany.MaxUnsettled = 2
	t.refusesSetup("3 lanes and 2 slots", tooMany, t.facts().FixedSlots)
	t.refusesSetup("a lease of a nanosecond", t.options(1, 1, work), false)
	w := t.subscribeFor(t.p, t.h.Lease, 1, work)
	t.publish(t.p, t.job(work))
	t.ack(w.one())
}

// refusesSetup subscribes and checks that it either works, where it may, or is
// refused with a SetupError that says all that it must.
func (t *env) refusesSetup(what string, opts provider.SubscribeOptions, must bool) {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	s, err := t.p.Jobs.Subscribe(ctx, opts)
	if err == nil {
		_ = s.Close(ctx)
		if must {
			t.Errorf("Subscribe with %s works; want a *SetupError", what)
		}
		return
	}
	var setup *provider.SetupError
	if !errors.As(err, &setup) {
		t.Errorf("Subscribe with %s: %v; want a *SetupError", what, err)
	} else if setup.Provider == "" || setup.Problem == "" || setup.Remedy == "" {
		t.Errorf("Subscribe with %s: %+v; want provider, problem and remedy", what, *setup)
	}
}
