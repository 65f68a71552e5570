package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime/provider"
)

func TestAHeldJobBecomesReadyWithoutAPromoter(t *testing.T) {
	simulated(t, func(d *desk) {
		w := d.worker(d.p, "q")
		start := time.Now()
		d.p.Delays.Hold(d.Context(), []provider.Job{d.job("q", after(time.Minute))})
		time.Sleep(time.Hour)
		is(d.T, "depth", known(d.T, d.numbers("q").Depth), 1)
		is(d.T, "ready for", known(d.T, d.numbers("q").OldestReady), time.Since(start)-time.Minute)
		d.ack(w.receive(1)[0])
		d.publish(d.job("q", after(time.Minute)))
		start = time.Now()
		d.ack(w.receive(1)[0])
		is(d.T, "waited", time.Since(start), time.Minute)
	})
}

func TestAReceiverThatSleepsLearnsOfAnEarlierTime(t *testing.T) {
	simulated(t, func(d *desk) {
		w := d.worker(d.p, "q")
		d.publish(d.job("q", after(time.Hour)))
		start := time.Now()
		time.AfterFunc(time.Minute, func() { d.publish(d.job("q", named("soon"), after(time.Minute))) })
		w.one("soon")
		is(d.T, "waited", time.Since(start), 2*time.Minute)
	})
}

func TestCancelTakesWhatHasNeverRun(t *testing.T) {
	simulated(t, func(d *desk) {
		d.publish(d.job("q", named("waits"), after(time.Hour)), d.job("q", named("failed")))
		w := d.worker(d.p, "q")
		d.retry(w.one("failed"), provider.FailedAgain, time.Minute)
		is(d.T, "waits", d.cancel("waits"), true)
		is(d.T, "waits, again", d.cancel("waits"), false)
		is(d.T, "failed", d.cancel("failed"), false)
		is(d.T, "unknown", d.cancel("unknown"), false)
		w.inOrder("failed")
		w.nothing(2 * time.Hour)
	})
}

func TestAHeldCopyIsReplacedOnlyByOneOfItsStamp(t *testing.T) {
	simulated(t, func(d *desk) {
		j := d.job("q", named("a"), after(time.Hour))
		d.publish(j)
		j.Delay, j.Payload = time.Minute, []byte("new")
		d.publish(j)
		failed := j.After(provider.Again{Why: provider.FailedAgain, After: time.Second})
		d.p.Delays.Hold(d.Context(), []provider.Job{failed})
		is(d.T, "held", known(d.T, d.numbers("q").Held), 2)
		w := d.worker(d.p, "q")
		first := w.one("a")
		is(d.T, "failures", first.Job().Counters.Failures, 1)
		d.ack(first)
		is(d.T, "payload", string(w.one("a").Job().Payload), "new")
		is(d.T, "held", known(d.T, d.numbers("q").Held), 0)
	})
}

// pub is the publish of a promoter, which notes what it was given.
type pub struct {
	mu    sync.Mutex
	ids   []string
	sizes []int
	then  func(ctx context.Context, jobs []provider.Job) []provider.Stored
}

func (p *pub) publish(ctx context.Context, jobs []provider.Job) []provider.Stored {
	p.mu.Lock()
	p.sizes = append(p.sizes, len(jobs))
	for _, j := range jobs {
		p.ids = append(p.ids, j.ID)
	}
	p.mu.Unlock()
	if p.then != nil {
		return p.then(ctx, jobs)
	}
	return stored(jobs, provider.OutcomeStored)
}

func (p *pub) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.ids)
}

func stored(jobs []provider.Job, o provider.Outcome) []provider.Stored {
	out := make([]provider.Stored, len(jobs))
	for i, j := range jobs {
		out[i] = provider.Stored{ID: j.ID, Outcome: o}
	}
	return out
}

// promote runs a promoter until stop is called, which returns its error.
func (d *desk) promote(delays provider.Delays, publish provider.Publish) (stop func() error) {
	ctx, cancel := context.WithCancel(d.Context())
	done := make(chan error, 1)
	go func() { done <- delays.Promote(ctx, publish) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	d.Cleanup(func() { _ = stop() })
	synctest.Wait()
	return stop
}

func TestPromotersPublishEachJobOnce(t *testing.T) {
	simulated(t, func(d *desk) {
		const jobs = 1000
		delays, _ := d.p.Lend("a")
		for i := range jobs {
			delays.Hold(d.Context(), []provider.Job{d.job("q", after(time.Duration(i%7)*time.Second))})
		}
		var p pub
		p.then = func(_ context.Context, jobs []provider.Job) []provider.Stored {
			time.Sleep(10 * time.Millisecond)
			return stored(jobs, provider.OutcomeStored)
		}
		for range 5 {
			lent, _ := d.another().Lend("a")
			d.promote(lent, p.publish)
		}
		time.Sleep(time.Minute)
		seen := p.seen()
		is(d.T, "published", len(seen), jobs)
		slices.Sort(seen)
		is(d.T, "different ones", len(slices.Compact(seen)), jobs)
		held, _ := delays.Held(d.Context(), "q")
		is(d.T, "held", known(d.T, held), 0)
	})
}

func TestPromotersKeepTheOrderOfAKey(t *testing.T) {
	simulated(t, func(d *desk) {
		delays, _ := d.p.Lend("a")
		var want []string
		for i := range 50 {
			j := d.job("q", keyed("k"), after(time.Duration(i)*time.Millisecond))
			want = append(want, j.ID)
			delays.Hold(d.Context(), []provider.Job{j, d.job("q", named("free"+j.ID), after(time.Duration(i)*time.Millisecond))})
		}
		tries := map[string]int{}
		var mu sync.Mutex
		var got []string
		publish := func(_ context.Context, jobs []provider.Job) []provider.Stored {
			time.Sleep(time.Duration(len(jobs)) * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			out := stored(jobs, provider.OutcomeStored)
			for i, j := range jobs {
				if j.OrderingKey == "" {
					continue
				}
				if tries[j.ID]++; tries[j.ID] == 1 {
					out[i].Outcome = provider.OutcomeRefused
					continue
				}
				got = append(got, j.ID)
			}
			return out
		}
		for range 4 {
			d.promote(delays, publish)
		}
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		is(d.T, "published", fmt.Sprint(got), fmt.Sprint(want))
	})
}

func TestACancelledJobOfAKeyKeepsNobodyBehindIt(t *testing.T) {
	simulated(t, func(d *desk) {
		delays, _ := d.p.Lend("a")
		for _, id := range []string{"first", "second", "third", "fourth"} {
			delays.Hold(d.Context(), []provider.Job{d.job("q", named(id), keyed("k"), after(time.Second))})
		}
		p := &pub{then: func(_ context.Context, jobs []provider.Job) []provider.Stored {
			time.Sleep(time.Minute)
			return stored(jobs, provider.OutcomeStored)
		}}
		d.promote(delays, p.publish)
		time.Sleep(30 * time.Second)
		for _, id := range []string{"second", "third"} { // one behind, and then the one that would be next
			if cancelled, err := delays.Cancel(d.Context(), id); err != nil || len(cancelled) != 1 {
				t.Errorf("cancel of %s: %d jobs, %v; want it cancelled", id, len(cancelled), err)
			}
		}
		time.Sleep(time.Hour)
		is(d.T, "published", fmt.Sprint(p.seen()), "[first fourth]")
	})
}

func TestAPromoterPausesLongerAndLongerWhileNothingIsStored(t *testing.T) {
	simulated(t, func(d *desk) {
		delays, _ := d.p.Lend("a")
		for range 500 {
			delays.Hold(d.Context(), []provider.Job{d.job("q")})
		}
		var p pub
		var down atomic.Bool
		down.Store(true)
		p.then = func(_ context.Context, jobs []provider.Job) []provider.Stored {
			if down.Load() {
				return nil // not known
			}
			return stored(jobs, provider.OutcomeDuplicate)
		}
		d.promote(delays, p.publish)
		time.Sleep(time.Minute)
		p.mu.Lock()
		if n := len(p.sizes); n > 40 {
			d.Errorf("%d publishes in a minute of outage", n)
		}
		p.mu.Unlock()
		down.Store(false)
		time.Sleep(5 * time.Second)
		held, _ := delays.Held(d.Context(), "q")
		is(d.T, "held", known(d.T, held), 0)
	})
}

func TestWhatADeadPromoterReservedComesBackAndIsNotForgotten(t *testing.T) {
	simulated(t, func(d *desk) {
		doomed := d.open(memory.Config{PromotionLease: time.Minute})
		delays, _ := doomed.Lend("a")
		delays.Hold(d.Context(), []provider.Job{d.job("q", named("a"))})
		var late pub
		late.then = func(_ context.Context, jobs []provider.Job) []provider.Stored {
			time.Sleep(time.Second)
			return stored(jobs, provider.OutcomeStored)
		}
		stop := d.promote(delays, late.publish)
		is(d.T, "dropped", d.store.Drop(doomed), true)
		start := time.Now()
		var p pub
		lent, _ := d.p.Lend("a")
		d.promote(lent, p.publish)
		time.Sleep(time.Minute - 1)
		is(d.T, "published by the heir", len(p.seen()), 0)
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		is(d.T, "published by the heir", len(p.seen()), 1)
		is(d.T, "waited", time.Since(start), time.Minute+1)
		if err := stop(); !errors.Is(err, provider.ErrClosed) {
			d.Errorf("promote of the dead: %v; want ErrClosed", err)
		}
	})
}

func TestWhatAStoppedPromoterDidNotPublishIsForOthersAtOnce(t *testing.T) {
	simulated(t, func(d *desk) {
		delays, _ := d.p.Lend("a")
		delays.Hold(d.Context(), []provider.Job{d.job("q", named("a"))})
		stop := d.promote(delays, func(ctx context.Context, jobs []provider.Job) []provider.Stored {
			<-ctx.Done()
			return stored(jobs, provider.OutcomeRefused)
		})
		var p pub
		d.promote(delays, p.publish)
		start := time.Now()
		if err := stop(); err != nil {
			d.Errorf("promote: %v; want nil at its context's end", err)
		}
		synctest.Wait()
		is(d.T, "published by the other", len(p.seen()), 1)
		is(d.T, "waited", time.Since(start), 0)
	})
}

func TestWhatWaitedBehindAStoppedPromotersJobIsForOthersAtOnce(t *testing.T) {
	simulated(t, func(d *desk) {
		delays, _ := d.p.Lend("a")
		for _, id := range []string{"a", "b"} {
			delays.Hold(d.Context(), []provider.Job{d.job("q", named(id), keyed("k"))})
		}
		stop := d.promote(delays, func(ctx context.Context, jobs []provider.Job) []provider.Stored {
			<-ctx.Done()
			return stored(jobs, provider.OutcomeStored)
		})
		var p pub
		d.promote(delays, p.publish)
		_ = stop()
		synctest.Wait()
		is(d.T, "published", fmt.Sprint(p.seen()), "[b]")
	})
}

func TestALateAnswerOfAPromoterIsOnlyAboutItsOwnReservation(t *testing.T) {
	for _, outcome := range []provider.Outcome{provider.OutcomeStored, provider.OutcomeRefused} {
		t.Run(outcome.String(), func(t *testing.T) {
			simulated(t, func(d *desk) {
				slow := d.open(memory.Config{PromotionLease: time.Second})
				delays, _ := slow.Lend("a")
				delays.Hold(d.Context(), []provider.Job{d.job("q", named("a"))})
				d.promote(delays, func(_ context.Context, jobs []provider.Job) []provider.Stored {
					time.Sleep(3 * time.Second)
					return stored(jobs, outcome)
				})
				var p pub
				p.then = func(_ context.Context, jobs []provider.Job) []provider.Stored {
					time.Sleep(5 * time.Second)
					return stored(jobs, provider.OutcomeStored)
				}
				lent, _ := d.p.Lend("a")
				d.promote(lent, p.publish)
				time.Sleep(time.Hour)
				is(d.T, "published by the other", len(p.seen()), 1)
			})
		})
	}
}

func TestOwnDelaysGoThroughAPublishWhileOneIsGiven(t *testing.T) {
	simulated(t, func(d *desk) {
		d.publish(d.job("q", named("k1"), keyed("k")), d.job("q", named("k2"), keyed("k")))
		w := d.worker(d.p, "q")
		d.retry(w.one("k1"), provider.FailedAgain, time.Minute) // keeps its place, so it is not published
		d.publish(d.job("q", named("a"), after(time.Minute)), d.job("q", named("b"), after(time.Hour)))
		var p pub
		p.then = func(ctx context.Context, jobs []provider.Job) []provider.Stored {
			return d.p.Jobs.Publish(ctx, jobs, provider.PublishOptions{Accepted: true})
		}
		stop := d.promote(d.p.Delays, p.publish)
		start := time.Now()
		got := []string{w.receive(1)[0].Job().ID, w.receive(1)[0].Job().ID}
		slices.Sort(got)
		is(d.T, "delivered", fmt.Sprint(got), "[a k1]")
		is(d.T, "waited", time.Since(start), time.Minute)
		is(d.T, "published", fmt.Sprint(p.seen()), "[a]")
		time.AfterFunc(lease/2, func() { _ = stop() })
		w2 := d.worker(d.p, "q")
		time.Sleep(time.Hour - lease)
		w2.receive(2) // those that were never settled
		w2.one("b")
	})
}

func TestPromoteWithoutAPublishEndsWithItsContextOrItsProvider(t *testing.T) {
	simulated(t, func(d *desk) {
		if err := d.promote(d.p.Delays, nil)(); err != nil {
			d.Errorf("promote: %v; want nil", err)
		}
		p := d.another()
		done := make(chan error, 1)
		go func() { done <- p.Delays.Promote(d.Context(), nil) }()
		synctest.Wait()
		if err := p.Close(d.Context()); err != nil {
			d.Errorf("close: %v", err)
		}
		if err := <-done; !errors.Is(err, provider.ErrClosed) {
			d.Errorf("promote: %v; want ErrClosed", err)
		}
		lent, _ := d.p.Lend("a")
		if err := lent.Promote(d.Context(), nil); err == nil {
			d.Error("lent delays are promoted to nowhere")
		}
	})
}

func TestWithLentDelaysNothingIsHeldHere(t *testing.T) {
	simulated(t, func(d *desk) {
		lender, err := memory.Open(memory.Config{})
		if err != nil {
			d.Fatal(err)
		}
		d.p.Delays, d.p.Claims = lender.Lend("memory")
		is(d.T, "with a delay", d.try(d.job("q", after(time.Second))).Outcome, provider.OutcomeRefused)
		d.publish(d.job("q", untilDone("key")), d.job("q", untilDone("key"))) // the runtime has claimed
		run := d.worker(d.p, "q").receive(1)[0]
		if err := run.Retry(d.Context(), provider.Again{Why: provider.SnoozedAgain}); err == nil {
			d.Error("a job is retried without delays")
		}
		if err := run.Ack(d.Context(), []provider.Job{d.job("q", after(time.Second))}); err == nil {
			d.Error("a next job is held without delays")
		}
		d.ack(run)
		if held := d.numbers("q").Held; held.String() != "unknown" {
			d.Errorf("held: %v; want unknown, because the lender knows", held)
		}
	})
}

// watched is what somebody puts around a capability.
type watched struct{ provider.Delays }

func TestDelaysWithSomethingAroundThemAreStillTheProvidersOwn(t *testing.T) {
	simulated(t, func(d *desk) {
		d.p.Delays = watched{d.p.Delays}
		d.publish(d.job("q", named("a"), after(time.Second)))
		w := d.worker(d.p, "q")
		d.retry(w.one("a"), provider.SnoozedAgain, time.Second)
		w.inOrder("a")
	})
}
