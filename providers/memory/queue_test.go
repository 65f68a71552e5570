package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime/provider"
)

// simulated runs a test in a bubble where waiting takes no time.
func simulated(t *testing.T, f func(d *desk)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(newDesk(t)) })
}

func (d *desk) retry(run provider.Delivery, why provider.Why, after time.Duration) {
	d.Helper()
	if err := run.Retry(d.Context(), provider.Again{Why: why, After: after}); err != nil {
		d.Fatalf("retry %s: %v", run.Job().ID, err)
	}
}

func (d *desk) release(run provider.Delivery) {
	d.Helper()
	if err := run.Release(d.Context()); err != nil {
		d.Fatalf("release %s: %v", run.Job().ID, err)
	}
}

func (d *desk) bury(run provider.Delivery) {
	d.Helper()
	if err := run.DeadLetter(d.Context(), provider.Failure{Class: provider.ClassPermanent}); err != nil {
		d.Fatalf("dead-letter %s: %v", run.Job().ID, err)
	}
}

// inOrder checks that the next deliveries are of these jobs, and acknowledges them.
func (w *worker) inOrder(ids ...string) {
	w.Helper()
	for _, id := range ids {
		w.ack(w.one(id))
	}
}

func named(id string) func(*provider.Job) {
	return func(j *provider.Job) { j.ID = id }
}

func TestJobsStartInTheOrderTheyCame(t *testing.T) {
	simulated(t, func(d *desk) {
		d.publish(d.job("q", named("a")), d.job("q", named("b")), d.job("q", named("c"), after(time.Second)))
		time.Sleep(2 * time.Second)
		d.publish(d.job("q", named("d")))
		d.worker(d.p, "q").inOrder("a", "b", "c", "d")
	})
}

func TestReleasedJobGoesFirstAndRetriedJobLast(t *testing.T) {
	simulated(t, func(d *desk) {
		d.publish(d.job("q", named("a")), d.job("q", named("b")), d.job("q", named("c")), d.job("q", named("d")))
		w := d.worker(d.p, "q")
		a, b := w.one("a"), w.one("b")
		d.retry(a, provider.SnoozedAgain, 0)
		d.release(b)
		w.inOrder("b", "c", "d", "a")
	})
}

func TestJobsOfAKeyAreNotOvertakenByAllThatCameAfterThem(t *testing.T) {
	simulated(t, func(d *desk) {
		d.publish(d.job("q", named("k1"), keyed("k")), d.job("q", named("k2"), keyed("k")))
		d.publish(d.job("q", named("a")), d.job("q", named("b")))
		w := d.worker(d.p, "q")
		w.inOrder("k1", "k2", "a", "b")
	})
}

func TestRetryOfAKeyKeepsItsPlaceAndStopsOnlyItsKey(t *testing.T) {
	simulated(t, func(d *desk) {
		d.publish(d.job("q", named("k1"), keyed("k")), d.job("q", named("k2"), keyed("k")), d.job("q", named("l1"), keyed("l")))
		w := d.worker(d.p, "q")
		d.retry(w.one("k1"), provider.FailedAgain, time.Minute)
		w.inOrder("l1")
		is(d.T, "held", known(d.T, d.numbers("q").Held), 1)
		is(d.T, "depth", known(d.T, d.numbers("q").Depth), 1) // k2 is behind k1
		w.nothing(time.Minute - 1)
		k1 := w.one("k1")
		w.nothing(time.Second)
		d.retry(k1, provider.FailedAgain, 0)
		w.inOrder("k1", "k2")
		w.nothing(time.Hour)
	})
}

func TestCancelOfAParkedJobFreesItsKey(t *testing.T) {
	simulated(t, func(d *desk) {
		d.publish(d.job("q", named("k1"), keyed("k")), d.job("q", named("k2"), keyed("k")))
		w := d.worker(d.p, "q")
		d.retry(w.one("k1"), provider.ParkedAgain, time.Minute)
		is(d.T, "cancelled", d.cancel("k1"), true)
		w.inOrder("k2")
	})
}

func (d *desk) cancel(id string) bool {
	d.Helper()
	cancelled, err := d.p.Delays.Cancel(d.Context(), id)
	if err != nil {
		d.Fatalf("cancel %s: %v", id, err)
	}
	return len(cancelled) > 0
}

func TestBoundCountsWhatIsHeldAndRunsAndIsStoredWithTheQueue(t *testing.T) {
	simulated(t, func(d *desk) {
		d.open(memory.Config{Bounds: map[string]int{"q": 3}})
		d.publish(d.job("q"), d.job("q", after(time.Hour)), d.job("q"))
		w := d.worker(d.p, "q")
		run := w.receive(1)[0]
		ctx, cancel := context.WithTimeout(d.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		s := d.p.Jobs.Publish(ctx, []provider.Job{d.job("q")}, provider.PublishOptions{})[0]
		is(d.T, "outcome", s.Outcome, provider.OutcomeRefused)
		is(d.T, "waited", time.Since(start), time.Minute)
		if !errors.Is(s.Err, provider.ErrQueueFull) || !errors.Is(s.Err, context.DeadlineExceeded) {
			d.Errorf("refused for %v; want ErrQueueFull and why the wait ended", s.Err)
		}
		// What is not a client's passes.
		d.ack(run, d.job("q"), d.job("q", after(time.Hour)))
		d.retry(w.receive(1)[0], provider.FailedAgain, time.Hour)
		d.open(memory.Config{Bounds: map[string]int{"q": 0}})
		d.publish(d.job("q"))
	})
}

func TestAPublisherThatGivesUpPassesOnTheRoom(t *testing.T) {
	simulated(t, func(d *desk) {
		d.open(memory.Config{Bounds: map[string]int{"q": 1}})
		d.publish(d.job("q", named("first")))
		w := d.worker(d.p, "q")
		answers := make(chan provider.Stored, 3)
		ctx, giveUp := context.WithCancel(d.Context())
		for _, id := range []string{"gives up", "second", "third"} {
			go func() {
				answers <- d.p.Jobs.Publish(ctx, []provider.Job{d.job("q", named(id))}, provider.PublishOptions{})[0]
			}()
			synctest.Wait()
			ctx = d.Context()
		}
		d.ack(w.one("first")) // who waits longest is told, and may see both ends at once
		giveUp()
		for range 3 {
			if s := <-answers; s.Outcome == provider.OutcomeStored {
				w.inOrder(s.ID)
			} else {
				is(d.T, "who was refused", s.ID, "gives up")
			}
		}
	})
}

func TestADuplicatePassesTheRoomOnThatItWaitedFor(t *testing.T) {
	simulated(t, func(d *desk) {
		d.open(memory.Config{Bounds: map[string]int{"q": 1}})
		d.publish(d.job("q", named("first")))
		w := d.worker(d.p, "q")
		answers := make(chan provider.Stored, 2)
		for _, j := range []provider.Job{d.job("q", named("merged"), untilDone("key")), d.job("q", named("second"))} {
			go func() { answers <- d.try(j) }()
			synctest.Wait()
		}
		d.publish(d.job("elsewhere", named("holder"), untilDone("key")))
		d.ack(w.one("first"))
		is(d.T, "first answer", (<-answers).Outcome, provider.OutcomeDuplicate)
		is(d.T, "second answer", (<-answers).Outcome, provider.OutcomeStored)
	})
}

func TestJobsThatCanNeverBeARecordAreRefused(t *testing.T) {
	simulated(t, func(d *desk) {
		for what, spoil := range map[string]func(*provider.Job){
			"no id":     func(j *provider.Job) { j.ID = "" },
			"no task":   func(j *provider.Job) { j.Task = "" },
			"no queue":  func(j *provider.Job) { j.Queue = "" },
			"not UTF-8": func(j *provider.Job) { j.Tenant = "\xff" },
			"header":    func(j *provider.Job) { j.Headers = map[string]string{"a": "\xff"} },
		} {
			j := d.job("q", spoil)
			if s := d.try(j); s.Outcome != provider.OutcomeRefused || s.Err == nil {
				d.Errorf("%s: %v, %v; want refused", what, s.Outcome, s.Err)
			}
			if s := d.p.Delays.Hold(d.Context(), []provider.Job{j})[0]; s.Outcome != provider.OutcomeRefused {
				d.Errorf("%s: held", what)
			}
			d.publish(d.job("q"))
			if err := d.worker(d.p, "q").receive(1)[0].Ack(d.Context(), []provider.Job{j}); err == nil {
				d.Errorf("%s: acknowledged with it as the next job", what)
			}
		}
	})
}

func TestADeliveredJobIsTheRecordThatWasStored(t *testing.T) {
	simulated(t, func(d *desk) {
		j := d.job("q", after(time.Second))
		j.Enqueued, j.FirstDue = time.Now(), time.Now().Add(time.Second)
		d.publish(j)
		got := d.worker(d.p, "q").receive(1)[0].Job()
		want, _ := provider.Marshal(&j)
		bytes, _ := provider.Marshal(got)
		is(d.T, "record", string(bytes), string(want))
		is(d.T, "delay", got.Delay, 0)
		is(d.T, "format", got.Format, provider.Format)
	})
}

// TestWorkersThatWaitTakeTurns: nobody is kept from a queue by another who is always
// first.
func TestWorkersThatWaitTakeTurns(t *testing.T) {
	simulated(t, func(d *desk) {
		counts := make([]atomic.Int64, 3)
		for i := range counts {
			w := d.worker(d.p, "q")
			go func() {
				for d.Context().Err() == nil {
					got, err := w.Receive(d.Context(), []string{"q"}, 10)
					if err != nil {
						return
					}
					for _, one := range got {
						counts[i].Add(1)
						_ = one.Ack(d.Context(), nil)
					}
				}
			}()
		}
		synctest.Wait()
		for range 30 {
			d.publish(d.job("q"))
			synctest.Wait()
		}
		for i := range counts {
			is(d.T, fmt.Sprintf("jobs of worker %d", i), counts[i].Load(), int64(10))
		}
	})
}
