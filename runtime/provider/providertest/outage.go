package providertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func outageChecks() []check {
	all := []check{
		{
			name: "outage/receive lives on",
			rule: "Receive blocks through outages, reconnecting with bounded backoff, and fails only when that is final.",
			run:  outageReceive,
		}, {
			name: "outage/publish",
			rule: "Publish returns when every outcome is known or ctx has ended; what is not known then is OutcomeUnknown, and the same id may be tried again.",
			run:  outagePublish,
		}, {
			name: "outage/settle",
			rule: "After an error that is neither ErrSettled nor ErrLeaseLost the same settlement may be called again, and no job is lost.",
			run:  outageSettle,
		}, {
			name: "outage/health and events",
			rule: "Health says why jobs cannot be published or received, and nil when they can; the provider reports Disconnected and Reconnected.",
			run:  outageHealth,
		}, {
			name:  "outage/promote lives on",
			rule:  "Promote lives through outages and returns an error only when that is final.",
			needs: []need{needOwnDelays},
			run:   outagePromote,
		},
	}
	for i := range all {
		all[i].needs = append([]need{needOutage}, all[i].needs...)
	}
	return all
}

func needOutage(t *env) string {
	if t.h.Outage == nil {
		return "not measured here: the harness has no Outage"
	}
	return ""
}

// outage makes the broker unreachable until restore is called, or the check ends.
func (t *env) outage() (restore func()) {
	t.Helper()
	restore, err := t.h.Outage()
	if err != nil {
		t.Fatalf("outage: %v", err)
	}
	restore = sync.OnceFunc(restore)
	t.Cleanup(restore)
	return restore
}

// insist publishes a job until it is stored.
func (t *env) insist(j provider.Job) {
	t.Helper()
	t.until("a job is stored after an outage", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return t.p.Jobs.Publish(ctx, []provider.Job{j}, provider.PublishOptions{})[0].Outcome == provider.OutcomeStored
	})
}

func outageReceive(t *env) {
	w := t.subscribe(t.p, 1, work)
	got := make(chan provider.Delivery, 1)
	t.start(func() {
		ctx, cancel := context.WithTimeout(t.Context(), 2*t.patience)
		defer cancel()
		ds, err := w.Receive(ctx, w.lanes, 1)
		if len(ds) != 1 {
			t.Errorf("Receive through an outage: %d deliveries, %v", len(ds), err)
			close(got)
			return
		}
		got <- ds[0]
	})
	time.Sleep(quiet)
	restore := t.outage()
	time.Sleep(2 * time.Second)
	restore()
	t.insist(t.job(work))
	if d, ok := <-got; ok {
		t.ack(d)
	}
}

func outagePublish(t *env) {
	t.publish(t.p, t.job(work))
	w := t.subscribe(t.p, 10, work)
	t.ack(w.one())
	restore := t.outage()
	jobs := t.some(3, work)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	start := time.Now()
	stored := t.p.Jobs.Publish(ctx, jobs, provider.PublishOptions{})
	if took := time.Since(start); took > t.slack(3*time.Second) {
		t.Errorf("Publish returned %v after its start, with a context of 2s", took)
	}
	t.answers("Publish in an outage", jobs, stored)
	for _, s := range stored {
		if s.Outcome != provider.OutcomeUnknown && s.Outcome != provider.OutcomeRefused || s.Err == nil {
			t.Errorf("%s in an outage: %s, %v; want unknown or refused, and why", s.ID, s.Outcome, s.Err)
		}
	}
	restore()
	last := t.job(work)
	t.insist(last)
	seen := tally(w.receive(1))
	for _, d := range w.during(2*time.Second, 5) {
		seen[d.Job().ID]++
	}
	for _, s := range stored {
		if s.Outcome == provider.OutcomeRefused && seen[s.ID] > 0 {
			t.Errorf("%s was refused in an outage (%v) and is delivered", s.ID, s.Err)
		}
	}
	if seen[last.ID] == 0 {
		t.Errorf("the job that was stored after the outage was not delivered")
	}
}

func outageSettle(t *env) {
	t.publish(t.p, t.some(2, work)...)
	w := t.subscribe(t.p, 2, work)
	ds := w.receive(2)
	restore := t.outage()
	for _, d := range ds {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := d.Ack(ctx, nil); err == nil && t.facts().Confirmed {
			t.Errorf("Ack is on record in an outage")
		}
		cancel()
	}
	restore()
	t.until("the jobs are settled after the outage", func() bool {
		for _, d := range ds {
			err := t.settle(settlement{call: func(ctx context.Context, d provider.Delivery) error { return d.Ack(ctx, nil) }}, d)
			if err != nil && !errors.Is(err, provider.ErrSettled) && !errors.Is(err, provider.ErrLeaseLost) {
				return false
			}
		}
		return true
	})
	// Where the outage ended a session its jobs come again.
	t.ack(w.during(2*time.Second, 2)...)
	t.insist(t.job(work))
	t.ack(w.one())
}

func outageHealth(t *env) {
	var mu sync.Mutex
	var kinds []provider.Kind
	defer t.p.Events.Observe(func(e provider.Event) {
		mu.Lock()
		defer mu.Unlock()
		kinds = append(kinds, e.Kind)
	})()
	saw := func(k provider.Kind) bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Contains(kinds, k)
	}
	w := t.subscribe(t.p, 1, work)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	t.start(func() { _, _ = w.Receive(ctx, w.lanes, 1) })
	healthy := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return t.p.Health(ctx) == nil
	}
	restore := t.outage()
	t.until("Health is an error in an outage", func() bool { return !healthy() })
	t.until("the outage is reported", func() bool { return saw(provider.Disconnected) })
	restore()
	t.until("Health is nil after an outage", healthy)
	t.until("its end is reported", func() bool { return saw(provider.Reconnected) })
	cancel()
}

func outagePromote(t *env) {
	t.promote(t.p)
	t.hold(t.p, t.job(work, delayed(time.Second)))
	restore := t.outage()
	time.Sleep(2 * time.Second)
	restore()
	t.ack(t.subscribe(t.p, 1, work).one())
}
