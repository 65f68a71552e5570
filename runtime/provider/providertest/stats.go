package providertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func statsChecks() []check {
	all := []check{
		{
			name: "stats/queues",
			rule: "Queues returns the names of all queues, sorted.",
			run:  statsQueues,
		}, {
			name: "stats/numbers",
			rule: "Queue returns the numbers of one queue; those that the broker cannot tell are unknown, never zero.",
			run:  statsNumbers,
		}, {
			name:  "stats/depth of a key",
			rule:  "Depth counts jobs that wait for a worker: ready to start, or behind another of their ordering key.",
			needs: []need{needOrder},
			run:   statsKey,
		}, {
			name: "stats/no such queue",
			rule: "A queue that does not exist has zeros.",
			run:  statsNone,
		},
	}
	for i := range all {
		all[i].needs = append([]need{needStats}, all[i].needs...)
	}
	return all
}

func (t *env) stats(queue string) provider.QueueStats {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	s, err := t.p.Stats.Queue(ctx, queue)
	if err != nil {
		t.Fatalf("Stats.Queue: %v", err)
	}
	return s
}

// becomes checks that a number, if it is known, is right in the end. Brokers may
// need a moment.
func becomes[N int64 | time.Duration](t *env, what string, measure func() provider.Measure[N], right func(N) bool) {
	t.Helper()
	if _, known := measure().Get(); !known {
		t.Logf("%s: unknown", what)
		return
	}
	t.until(what, func() bool {
		n, known := measure().Get()
		return !known || right(n)
	})
}

func (t *env) counts(queue string, depth, inFlight, held, dead int64) {
	t.Helper()
	is := func(name string, of func(provider.QueueStats) provider.Measure[int64], want int64) {
		t.Helper()
		what := fmt.Sprintf("%s of queue %s is %d", name, queue, want)
		becomes(t, what, func() provider.Measure[int64] { return of(t.stats(queue)) }, func(n int64) bool { return n == want })
	}
	is("Depth", func(s provider.QueueStats) provider.Measure[int64] { return s.Depth }, depth)
	is("InFlight", func(s provider.QueueStats) provider.Measure[int64] { return s.InFlight }, inFlight)
	is("Held", func(s provider.QueueStats) provider.Measure[int64] { return s.Held }, held)
	is("Dead", func(s provider.QueueStats) provider.Measure[int64] { return s.Dead }, dead)
}

func statsQueues(t *env) {
	t.publish(t.p, t.job("zebra"), t.job("ant"), t.job("mail.v1"))
	t.until("Queues are ant, mail.v1 and zebra, in this order", func() bool {
		ctx, cancel := t.ctx()
		defer cancel()
		queues, err := t.p.Stats.Queues(ctx)
		if err != nil {
			t.Fatalf("Queues: %v", err)
		}
		return slices.Equal(queues, []string{"ant", "mail.v1", "zebra"})
	})
}

func statsNumbers(t *env) {
	start := time.Now()
	t.publish(t.p, t.some(7, work)...)
	t.publish(t.p, t.job(other))
	w := t.subscribe(t.p, 3, work)
	ds := w.receive(3)
	t.counts(work, 4, 3, 0, 0)
	t.counts(other, 1, 0, 0, 0)
	time.Sleep(time.Second)
	age := func(what string, of func(provider.QueueStats) provider.Measure[time.Duration], least time.Duration) {
		t.Helper()
		becomes(t, what, func() provider.Measure[time.Duration] { return of(t.stats(work)) }, func(d time.Duration) bool {
			return d >= least && d <= time.Since(start)+time.Second
		})
	}
	ready := func(s provider.QueueStats) provider.Measure[time.Duration] { return s.OldestReady }
	age("OldestReady is how long the oldest has been ready", ready, time.Second)
	t.ack(ds[0])
	t.deadLetter(ds[1], failure(1))
	t.counts(work, 4, 1, 0, 1)
	time.Sleep(time.Second)
	age("OldestDead is how long the oldest has been dead", func(s provider.QueueStats) provider.Measure[time.Duration] {
		return s.OldestDead
	}, time.Second)
	if t.p.Delays != nil && t.round == own {
		t.hold(t.p, t.some(2, work, delayed(time.Hour))...)
		t.counts(work, 4, 1, 2, 1)
	}
	t.ack(ds[2])
	for range 4 {
		t.ack(w.one())
	}
	if t.round == own {
		if age, known := t.stats(work).OldestReady.Get(); known && age != 0 {
			t.until("OldestReady of a queue with nothing ready is zero", func() bool {
				age, _ := t.stats(work).OldestReady.Get()
				return age == 0
			})
		}
	}
}

func statsKey(t *env) {
	t.publish(t.p, t.some(3, work, ordered("a"))...)
	w := t.subscribe(t.p, 3, work)
	d := w.one()
	t.counts(work, 2, 1, 0, 0)
	t.ack(d)
	t.counts(work, 2, 0, 0, 0)
}

func statsNone(t *env) {
	s := t.stats("never used")
	for name, m := range map[string]provider.Measure[int64]{"Depth": s.Depth, "InFlight": s.InFlight, "Held": s.Held, "Dead": s.Dead} {
		if n, known := m.Get(); known && n != 0 {
			t.Errorf("%s of a queue that does not exist is %d; want zero", name, n)
		}
	}
	for name, m := range map[string]provider.Measure[time.Duration]{"OldestReady": s.OldestReady, "OldestDead": s.OldestDead} {
		if n, known := m.Get(); known && n != 0 {
			t.Errorf("%s of a queue that does not exist is %v; want zero", name, n)
		}
	}
}
