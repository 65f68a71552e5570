package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func TestWhatADroppedProcessHeldIsTakenOverWhenItsLeaseEnds(t *testing.T) {
	simulated(t, func(d *desk) {
		doomed := d.another()
		w, heir := d.worker(doomed, "q"), d.worker(d.p, "other", "q")
		d.publish(d.job("q", named("a")))
		start := time.Now()
		stale := w.one("a")
		was := *stale.Job()
		is(d.T, "dropped", d.store.Drop(doomed), true)
		is(d.T, "dropped, again", d.store.Drop(doomed), false)
		fresh := heir.one("a")
		is(d.T, "waited", time.Since(start), lease)
		is(d.T, "crashes", fresh.Job().Counters.Crashes, 1)
		is(d.T, "crashes of the first run", stale.Job().Counters, was.Counters)
		for what, err := range map[string]error{
			"ack":     stale.Ack(d.Context(), []provider.Job{d.job("q")}),
			"release": stale.Release(d.Context()),
			"extend":  w.Extend(d.Context(), []provider.Delivery{stale})[0],
			"health":  doomed.Health(d.Context()),
			"publish": doomed.Jobs.Publish(d.Context(), []provider.Job{d.job("q")}, provider.PublishOptions{})[0].Err,
			"hold":    doomed.Delays.Hold(d.Context(), []provider.Job{d.job("q")})[0].Err,
		} {
			if !errors.Is(err, provider.ErrClosed) {
				d.Errorf("%s in a dropped process: %v; want ErrClosed", what, err)
			}
		}
		if _, err := w.Receive(d.Context(), w.lanes, 1); !errors.Is(err, provider.ErrClosed) {
			d.Errorf("receive in a dropped process: %v; want ErrClosed", err)
		}
		select {
		case <-stale.Lost():
		default:
			d.Error("Lost is open after a takeover")
		}
		d.ack(fresh)
		heir.nothing(time.Hour)
	})
}

func TestTakeoverGoesAheadOfTheLanes(t *testing.T) {
	simulated(t, func(d *desk) {
		doomed := d.another()
		d.publish(d.job("low", named("left")), d.job("high", named("h1")), d.job("high", named("h2")))
		d.worker(doomed, "low").one("left")
		d.store.Drop(doomed)
		w := d.worker(d.p, "high", "low")
		w.inOrder("h1")
		time.Sleep(lease)
		w.inOrder("left", "h2")
	})
}

func TestAReceiverThatSleepsTakesOverWhatWasTakenMeanwhile(t *testing.T) {
	simulated(t, func(d *desk) {
		doomed := d.another()
		w, heir := d.worker(doomed, "q"), d.worker(d.p, "q")
		got := make(chan string, 1)
		ctx, cancel := context.WithCancel(d.Context())
		defer cancel()
		go func() { w.Receive(ctx, w.lanes, 1) }()
		synctest.Wait()
		d.publish(d.job("q", named("a"))) // its process dies with the call
		synctest.Wait()
		go func() { got <- heir.receive(1)[0].Job().ID }()
		synctest.Wait()
		start := time.Now()
		d.store.Drop(doomed)
		is(d.T, "taken over", <-got, "a")
		is(d.T, "waited", time.Since(start), lease)
	})
}

func TestAnOlderRunTouchesNothingInTheSameWorker(t *testing.T) {
	simulated(t, func(d *desk) {
		d.publish(d.job("q", named("a")))
		w := d.worker(d.p, "q")
		stale := w.one("a")
		lost := stale.Lost()
		fresh := w.one("a") // after its lease
		<-lost
		for what, settle := range map[string]func() error{
			"ack":         func() error { return stale.Ack(d.Context(), []provider.Job{d.job("q")}) },
			"ack again":   func() error { return stale.Ack(d.Context(), nil) },
			"extend":      func() error { return w.Extend(d.Context(), []provider.Delivery{stale})[0] },
			"extend both": func() error { return w.Extend(d.Context(), []provider.Delivery{fresh, stale})[1] },
		} {
			if err := settle(); !errors.Is(err, provider.ErrLeaseLost) {
				d.Errorf("%s of an older run: %v; want ErrLeaseLost", what, err)
			}
		}
		time.Sleep(lease - 1)
		if err := w.Extend(d.Context(), []provider.Delivery{fresh})[0]; err != nil {
			d.Errorf("extend: %v", err)
		}
		w.nothing(lease - 1)
		is(d.T, "in flight", known(d.T, d.numbers("q").InFlight), 1)
		d.ack(fresh)
		w.nothing(time.Hour)
	})
}

func TestALeaseThatNobodyTookOverIsStillOurs(t *testing.T) {
	simulated(t, func(d *desk) {
		d.publish(d.job("q", named("a")), d.job("q", named("b")))
		w := d.worker(d.p, "q")
		runs := w.receive(2)
		time.Sleep(10 * lease)
		if err := w.Extend(d.Context(), runs[:1])[0]; err != nil {
			d.Errorf("extend: %v", err)
		}
		d.ack(runs[1])
		d.ack(runs[0])
		w.nothing(time.Hour)
	})
}

func TestTheFirstSettlementFixesItsKind(t *testing.T) {
	simulated(t, func(d *desk) {
		d.publish(d.job("q", named("a")))
		w := d.worker(d.p, "q")
		run := w.one("a")
		ended, cancel := context.WithCancel(d.Context())
		cancel()
		if err := run.Ack(ended, nil); !errors.Is(err, context.Canceled) {
			d.Errorf("ack with an ended context: %v", err)
		}
		if err := run.Release(d.Context()); !errors.Is(err, provider.ErrSettled) {
			d.Errorf("release after a try to ack: %v; want ErrSettled", err)
		}
		d.ack(run)
		if err := run.Ack(d.Context(), nil); !errors.Is(err, provider.ErrSettled) {
			d.Errorf("ack again: %v; want ErrSettled", err)
		}
		if err := w.Extend(d.Context(), []provider.Delivery{run})[0]; !errors.Is(err, provider.ErrSettled) {
			d.Errorf("extend: %v; want ErrSettled", err)
		}
		select {
		case <-run.Lost():
			d.Error("a settled run is lost")
		default:
		}
	})
}

func TestAClosedSubscriptionSettlesNothingMore(t *testing.T) {
	simulated(t, func(d *desk) {
		d.publish(d.job("q", named("a")))
		w := d.worker(d.p, "q")
		run := w.one("a")
		received := make(chan error, 1)
		go func() {
			_, err := w.Receive(d.Context(), w.lanes, 1)
			received <- err
		}()
		synctest.Wait()
		start := time.Now()
		for range 2 {
			if err := w.Close(d.Context()); err != nil {
				d.Errorf("close: %v", err)
			}
		}
		if err := <-received; !errors.Is(err, provider.ErrClosed) {
			d.Errorf("receive: %v; want ErrClosed", err)
		}
		if err := run.Ack(d.Context(), nil); !errors.Is(err, provider.ErrClosed) {
			d.Errorf("ack: %v; want ErrClosed", err)
		}
		if err := w.Extend(d.Context(), []provider.Delivery{run})[0]; !errors.Is(err, provider.ErrClosed) {
			d.Errorf("extend: %v; want ErrClosed", err)
		}
		d.worker(d.p, "q").one("a")
		is(d.T, "waited", time.Since(start), lease)
	})
}

func TestReceiveEndsWithItsContextAndLosesNothing(t *testing.T) {
	simulated(t, func(d *desk) {
		w := d.worker(d.p, "q")
		ctx, cancel := context.WithTimeout(d.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		got, err := w.Receive(ctx, w.lanes, 1)
		is(d.T, "waited", time.Since(start), time.Minute)
		if len(got) > 0 || !errors.Is(err, context.DeadlineExceeded) {
			d.Errorf("received %v, %v", got, err)
		}
		d.publish(d.job("q", named("a")))
		if got, _ := w.Receive(ctx, w.lanes, 1); len(got) > 0 {
			d.Error("a receive that had ended took a job")
		}
		w.inOrder("a")
	})
}

func TestCallsThatMakeNoSenseFail(t *testing.T) {
	simulated(t, func(d *desk) {
		w := d.worker(d.p, "q")
		for what, call := range map[string]func() ([]provider.Delivery, error){
			"another lane": func() ([]provider.Delivery, error) { return w.Receive(d.Context(), []string{"other"}, 1) },
			"no lane":      func() ([]provider.Delivery, error) { return w.Receive(d.Context(), nil, 1) },
			"no delivery":  func() ([]provider.Delivery, error) { return w.Receive(d.Context(), w.lanes, 0) },
		} {
			if _, err := call(); err == nil {
				d.Errorf("receive of %s works", what)
			}
		}
		d.publish(d.job("q", named("a")))
		run := w.one("a")
		if err := d.worker(d.p, "q").Extend(d.Context(), []provider.Delivery{run})[0]; err == nil {
			d.Error("a subscription extends a delivery of another")
		}
		lanes := []provider.Lane{{Queue: "q", Slots: 1}}
		for _, opts := range []provider.SubscribeOptions{
			{Lanes: lanes, Lease: time.Second},
			{Worker: "w", Lease: time.Second},
			{Worker: "w", Lanes: lanes},
			{Worker: "w", Lanes: []provider.Lane{{Slots: 1}}, Lease: time.Second},
		} {
			var setup *provider.SetupError
			if _, err := d.p.Jobs.Subscribe(d.Context(), opts); !errors.As(err, &setup) {
				d.Errorf("subscribe with %+v: %v; want a SetupError", opts, err)
			}
		}
	})
}
