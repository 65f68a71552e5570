package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime/provider"
)

func TestTheZeroConfigOpensAStoreOfItsOwn(t *testing.T) {
	t.Parallel()
	a, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := memory.Open(memory.Config{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	a.Jobs.Publish(t.Context(), []provider.Job{{ID: "a", Task: "t", Queue: "q"}}, provider.PublishOptions{})
	queues, _ := b.Stats.Queues(t.Context())
	is(t, "queues of another store", len(queues), 0)
	is(t, "name", a.Name, "memory")
	is(t, "name", b.Name, "other")
	is(t, "health", a.Health(t.Context()), nil)
}

func TestAConfigThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	for _, config := range []memory.Config{
		{Bounds: map[string]int{"q": -1}}, {Bounds: map[string]int{"": 1}}, {MaxDead: -2}, {PromotionLease: -1},
	} {
		var setup *provider.SetupError
		if _, err := memory.Open(config); !errors.As(err, &setup) {
			t.Errorf("%+v: %v; want a SetupError", config, err)
		}
	}
}

func TestAfterCloseEveryCallSaysSo(t *testing.T) {
	simulated(t, func(d *desk) {
		w := d.worker(d.p, "q")
		d.publish(d.job("q", named("a")))
		run := w.one("a")
		lent, lentClaims := d.p.Lend("a")
		for range 2 {
			if err := d.p.Close(d.Context()); err != nil {
				d.Errorf("close: %v", err)
			}
		}
		ctx, jobs := d.Context(), []provider.Job{d.job("q")}
		for what, call := range map[string]func() error{
			"publish": func() error { return d.p.Jobs.Publish(ctx, jobs, provider.PublishOptions{})[0].Err },
			"subscribe": func() error {
				_, err := d.p.Jobs.Subscribe(ctx, provider.SubscribeOptions{Worker: "w", Lanes: []provider.Lane{{Queue: "q"}}, Lease: 1})
				return err
			},
			"receive":   func() error { _, err := w.Receive(ctx, w.lanes, 1); return err },
			"ack":       func() error { return run.Ack(ctx, nil) },
			"hold":      func() error { return d.p.Delays.Hold(ctx, jobs)[0].Err },
			"lent hold": func() error { return lent.Hold(ctx, jobs)[0].Err },
			"promote":   func() error { return d.p.Delays.Promote(ctx, nil) },
			"cancel":    func() error { _, err := lent.Cancel(ctx, "a"); return err },
			"held":      func() error { _, err := lent.Held(ctx, "q"); return err },
			"claim":     func() error { _, err := lentClaims.Claim(ctx, nil); return err },
			"release":   func() error { return d.p.Claims.Release(ctx, "k", "a") },
			"queues":    func() error { _, err := d.p.Stats.Queues(ctx); return err },
			"queue":     func() error { _, err := d.p.Stats.Queue(ctx, "q"); return err },
			"list":      func() error { _, _, err := d.p.Dead.List(ctx, provider.DeadFilter{}, ""); return err },
			"get":       func() error { _, err := d.p.Dead.Get(ctx, "1"); return err },
			"replay":    func() error { _, err := d.p.Dead.Replay(ctx, "1"); return err },
			"discard":   func() error { _, err := d.p.Dead.Discard(ctx, "1"); return err },
			"health":    func() error { return d.p.Health(ctx) },
		} {
			if err := call(); !errors.Is(err, provider.ErrClosed) {
				d.Errorf("%s: %v; want ErrClosed", what, err)
			}
		}
		is(d.T, "dropped", d.store.Drop(d.p), false)
	})
}

func TestCloseWaitsForCallsUnderWayUntilItsContextEnds(t *testing.T) {
	simulated(t, func(d *desk) {
		d.open(memory.Config{Bounds: map[string]int{"q": 1}})
		other := d.another()
		d.publish(d.job("q", named("a")))
		w := d.worker(d.p, "q")
		for _, room := range []bool{true, false} {
			p := d.another()
			run := w.receive(1)[0]
			answer := make(chan provider.Stored, 1)
			go func() {
				answer <- p.Jobs.Publish(d.Context(), []provider.Job{d.job("q")}, provider.PublishOptions{})[0]
			}()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(d.Context(), lease/2)
			defer cancel()
			if room {
				time.AfterFunc(time.Second, func() { d.ack(run) })
			}
			start := time.Now()
			err := p.Close(ctx)
			is(d.T, "closed without an error", err == nil, room)
			s := <-answer
			if room {
				is(d.T, "waited", time.Since(start), time.Second)
				is(d.T, "outcome", s.Outcome, provider.OutcomeStored)
				continue
			}
			is(d.T, "waited", time.Since(start), lease/2)
			if s.Outcome != provider.OutcomeRefused || !errors.Is(s.Err, provider.ErrClosed) {
				d.Errorf("a publish that was cut off: %v, %v", s.Outcome, s.Err)
			}
		}
		is(d.T, "health of another", other.Health(d.Context()), nil)
	})
}

func TestDropEndsCallsUnderWay(t *testing.T) {
	simulated(t, func(d *desk) {
		d.open(memory.Config{Bounds: map[string]int{"q": 1}})
		d.publish(d.job("q", named("a")))
		p := d.another()
		w := d.worker(p, "r")
		ended := make(chan error, 3)
		go func() {
			ended <- p.Jobs.Publish(d.Context(), []provider.Job{d.job("q")}, provider.PublishOptions{})[0].Err
		}()
		go func() {
			_, err := w.Receive(d.Context(), w.lanes, 1)
			ended <- err
		}()
		go func() { ended <- p.Delays.Promote(d.Context(), nil) }()
		synctest.Wait()
		d.store.Drop(p)
		for range 3 {
			if err := <-ended; !errors.Is(err, provider.ErrClosed) {
				d.Errorf("a call under way ended with %v; want ErrClosed", err)
			}
		}
	})
}

func TestStatsTellReadyFromRunningHeldAndDead(t *testing.T) {
	simulated(t, func(d *desk) {
		d.kill(1, "q") // takes a second
		d.publish(d.job("q", named("runs")), d.job("q", after(time.Hour)), d.job("q", named("k1"), keyed("k")))
		w := d.worker(d.p, "q")
		w.one("runs")
		d.publish(d.job("q", named("k2"), keyed("k")), d.job("q"))
		time.Sleep(3 * time.Second)
		n := d.numbers("q")
		is(d.T, "depth", known(d.T, n.Depth), 3) // k2 is behind k1
		is(d.T, "oldest ready", known(d.T, n.OldestReady), 3*time.Second)
		is(d.T, "in flight", known(d.T, n.InFlight), 1)
		is(d.T, "held", known(d.T, n.Held), 1)
		is(d.T, "dead", known(d.T, n.Dead), 1)
		is(d.T, "oldest dead", known(d.T, n.OldestDead), 4*time.Second)
		time.Sleep(lease)
		for range 3 {
			w.receive(1)
		}
		n = d.numbers("q")
		is(d.T, "depth", known(d.T, n.Depth), 1) // k2 still
		is(d.T, "oldest ready", known(d.T, n.OldestReady), 0)
		is(d.T, "depth of no queue", known(d.T, d.numbers("unknown").Depth), 0)
	})
}
