package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func (d *desk) claim(c provider.Claims, key, owner string, length time.Duration, confirmed bool) provider.Holder {
	d.Helper()
	holders, err := c.Claim(d.Context(), []provider.Claim{{Key: key, Owner: owner, For: length, Confirmed: confirmed}})
	if err != nil {
		d.Fatalf("claim: %v", err)
	}
	return holders[0]
}

func TestPublishWaitsForAPendingClaimToBecomeSomethingElse(t *testing.T) {
	for what, c := range map[string]struct {
		then func(d *desk)
		want provider.Outcome
	}{
		"confirmed": {func(d *desk) { d.claim(d.p.Claims, "key", "another", time.Hour, true) }, provider.OutcomeDuplicate},
		"released":  {func(d *desk) { _ = d.p.Claims.Release(d.Context(), "key", "another") }, provider.OutcomeStored},
		"run out":   {func(d *desk) { time.Sleep(time.Minute) }, provider.OutcomeStored},
	} {
		t.Run(what, func(t *testing.T) {
			simulated(t, func(d *desk) {
				d.claim(d.p.Claims, "key", "another", time.Minute, false)
				answer := make(chan provider.Stored, 1)
				go func() { answer <- d.try(d.job("q", untilDone("key"))) }()
				synctest.Wait()
				if len(answer) > 0 {
					d.Fatalf("answered %+v while the claim was pending", <-answer)
				}
				c.then(d)
				is(d.T, "outcome", (<-answer).Outcome, c.want)
			})
		})
	}
}

func TestPublishGivesUpAPendingClaimWithItsContext(t *testing.T) {
	simulated(t, func(d *desk) {
		d.claim(d.p.Claims, "key", "another", time.Hour, false)
		ctx, cancel := context.WithTimeout(d.Context(), time.Second)
		defer cancel()
		s := d.p.Jobs.Publish(ctx, []provider.Job{d.job("q", untilDone("key"))}, provider.PublishOptions{})[0]
		if s.Outcome != provider.OutcomeRefused || !errors.Is(s.Err, provider.ErrDedupePending) {
			d.Errorf("%v, %v; want refused with ErrDedupePending", s.Outcome, s.Err)
		}
		d.worker(d.p, "q").nothing(time.Second)
	})
}

func TestAckWaitsForAPendingClaimOfANextJob(t *testing.T) {
	simulated(t, func(d *desk) {
		d.publish(d.job("q", named("parent")))
		w := d.worker(d.p, "q")
		run := w.one("parent")
		d.claim(d.p.Claims, "key", "another", time.Minute, false)
		next := d.job("q", named("child"), untilDone("key"))
		ctx, cancel := context.WithTimeout(d.Context(), time.Second)
		defer cancel()
		if err := run.Ack(ctx, []provider.Job{next}); !errors.Is(err, provider.ErrDedupePending) {
			d.Errorf("ack: %v; want ErrDedupePending", err)
		}
		if errs := w.Extend(d.Context(), []provider.Delivery{run}); errs[0] != nil {
			d.Errorf("extend with the settlement under way: %v", errs[0])
		}
		done := make(chan error, 1)
		go func() { done <- run.Ack(d.Context(), []provider.Job{next}) }()
		go func() {
			for i := 0; i < 20; i++ { // the heartbeat
				time.Sleep(lease / 3)
				w.Extend(d.Context(), []provider.Delivery{run})
			}
		}()
		if err := <-done; err != nil {
			d.Fatalf("ack: %v", err)
		}
		w.inOrder("child")
		w.nothing(time.Hour)
	})
}

func TestAnAckThatWaitedTooLongIsRefused(t *testing.T) {
	simulated(t, func(d *desk) {
		d.publish(d.job("q", named("parent")))
		w, heir := d.worker(d.p, "q"), d.worker(d.another(), "q")
		run := w.one("parent")
		d.claim(d.p.Claims, "key", "another", time.Minute, false)
		done := make(chan error, 1)
		go func() { done <- run.Ack(d.Context(), []provider.Job{d.job("q", untilDone("key"))}) }()
		fresh := heir.one("parent")
		var lost *provider.LostError
		if err := <-done; !errors.As(err, &lost) || lost.Stored != provider.OutcomeRefused {
			d.Errorf("late ack: %v; want a LostError that says refused", err)
		}
		is(d.T, "crashes", fresh.Job().Counters.Crashes, 1)
	})
}

func TestClaimsEndWithTheirJobs(t *testing.T) {
	for what, c := range map[string]struct {
		end        func(d *desk, run provider.Delivery)
		windowEnds bool
	}{
		"ack":         {func(d *desk, run provider.Delivery) { d.ack(run) }, false},
		"dead letter": {func(d *desk, run provider.Delivery) { d.bury(run) }, true},
		"cancel": {func(d *desk, run provider.Delivery) {
			d.retry(run, provider.ParkedAgain, time.Hour)
			is(d.T, "cancelled", d.cancel(run.Job().ID), true)
		}, true},
	} {
		t.Run(what, func(t *testing.T) {
			simulated(t, func(d *desk) {
				d.publish(d.job("q", named("a"), untilDone("done")), d.job("q", named("b"), window("window", time.Hour)))
				w := d.worker(d.p, "q")
				for _, run := range w.receive(2) {
					c.end(d, run)
				}
				is(d.T, "claimed until done", d.try(d.job("q", untilDone("done"))).Outcome, provider.OutcomeStored)
				want := provider.OutcomeDuplicate
				if c.windowEnds {
					want = provider.OutcomeStored
				}
				is(d.T, "claimed for a window", d.try(d.job("q", window("window", time.Hour))).Outcome, want)
			})
		})
	}
}

func TestClaimsRunOutAndAreNeverMadeShorter(t *testing.T) {
	simulated(t, func(d *desk) {
		d.claim(d.p.Claims, "key", "a", time.Hour, true)
		d.claim(d.p.Claims, "key", "a", time.Minute, false)
		time.Sleep(time.Hour - 1)
		is(d.T, "holder", d.claim(d.p.Claims, "key", "b", time.Minute, true), provider.Holder{Owner: "a", Confirmed: true})
		time.Sleep(time.Nanosecond)
		is(d.T, "holder", d.claim(d.p.Claims, "key", "b", time.Minute, false), provider.Holder{Owner: "b"})
	})
}

func TestAClaimThatIsNoClaimFailsAndClaimsNothing(t *testing.T) {
	simulated(t, func(d *desk) {
		good := provider.Claim{Key: "key", Owner: "a", For: time.Hour}
		for _, bad := range []provider.Claim{{Owner: "a", For: 1}, {Key: "k", For: 1}, {Key: "k", Owner: "a"}} {
			if _, err := d.p.Claims.Claim(d.Context(), []provider.Claim{good, bad}); err == nil {
				d.Errorf("%+v is taken", bad)
			}
		}
		is(d.T, "holder", d.claim(d.p.Claims, "key", "b", time.Hour, false).Owner, "b")
	})
}

func TestScopesNeverSeeEachOther(t *testing.T) {
	simulated(t, func(d *desk) {
		delaysA, claimsA := d.p.Lend("a")
		delaysB, claimsB := d.p.Lend("b")
		for _, c := range []provider.Claims{d.p.Claims, claimsA, claimsB} {
			owner := "of " + map[bool]string{true: "borrower", false: "lender"}[c.Facts().Lent]
			is(d.T, "holder", d.claim(c, "key", owner, time.Hour, true).Owner, owner)
		}
		j := d.job("q", after(time.Minute))
		for _, delays := range []provider.Delays{d.p.Delays, delaysA, delaysB} {
			delays.Hold(d.Context(), []provider.Job{j})
		}
		if cancelled, err := delaysB.Cancel(d.Context(), j.ID); len(cancelled) != 1 || err != nil {
			d.Errorf("cancel: %v, %v", cancelled, err)
		}
		again, _ := d.another().Lend("a")
		for _, c := range []struct {
			what   string
			delays provider.Delays
			want   int64
		}{{"own", d.p.Delays, 1}, {"a", delaysA, 1}, {"b", delaysB, 0}, {"a, lent by another process", again, 1}} {
			held, err := c.delays.Held(d.Context(), "q")
			if err != nil {
				d.Fatal(err)
			}
			is(d.T, "held by "+c.what, known(d.T, held), c.want)
		}
		d.worker(d.p, "q").inOrder(j.ID)
		if queues, _ := d.p.Stats.Queues(d.Context()); len(queues) != 1 {
			d.Errorf("queues: %v", queues)
		}
	})
}
