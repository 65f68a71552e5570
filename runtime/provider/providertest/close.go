package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func closeChecks() []check {
	return []check{
		{
			name: "close/twice",
			rule: "Close ends the provider; closing twice is fine, a subscription too.",
			run:  closeTwice,
		}, {
			name: "close/calls after it",
			rule: "Calls after Close return ErrClosed.",
			run:  closeAfter,
		}, {
			name: "close/the others go on",
			rule: "Closing ends one provider; what others have open on the same storage goes on.",
			run:  closeOthers,
		}, {
			name: "close/blocked calls",
			rule: "Receive ends when its subscription is closed, Promote when its provider is.",
			run:  closeBlocked,
		}, {
			name: "close/settlements under way",
			rule: "Subscription.Close waits for settlements under way; later ones return ErrClosed, and their deliveries are delivered again.",
			run:  closeSettling,
		}, {
			name: "close/publishes under way",
			rule: "Provider.Close waits for calls under way: what they said was stored is stored, what they refused is not.",
			run:  closePublishing,
		}, {
			name: "close/no goroutine is left",
			rule: "A provider starts no goroutine that outlives Close.",
			run:  closeGoroutines,
		}, {
			name: "close/health",
			rule: "Health returns nil while jobs can be published and every subscription receives.",
			run:  closeHealth,
		},
	}
}

func (t *env) close(p *provider.Provider) {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Errorf("Provider.Close: %v", err)
	}
}

func closeTwice(t *env) {
	w := t.subscribe(t.p, 1, work)
	w.end()
	w.end()
	t.close(t.p)
	t.close(t.p)
	var wg sync.WaitGroup
	p := t.open()
	for range 4 {
		wg.Go(func() { t.close(p) })
	}
	wg.Wait()
}

// closed checks the error of a call on what was closed.
func (t *env) closed(call string, err error) {
	t.Helper()
	if !errors.Is(err, provider.ErrClosed) {
		t.Errorf("%s after Close: %v; want ErrClosed", call, err)
	}
}

func closeAfter(t *env) {
	t.publish(t.p, t.some(2, work)...)
	w := t.subscribe(t.p, 2, work)
	ds := w.receive(2)
	w.end()
	ctx, cancel := t.ctx()
	defer cancel()
	_, err := w.Receive(ctx, w.lanes, 1)
	t.closed("Subscription.Receive", err)
	for _, s := range t.settlements() {
		t.closed("Delivery."+s.name, s.call(ctx, ds[0]))
	}
	if err := t.extend(w, ds[1])[0]; !errors.Is(err, provider.ErrClosed) && !errors.Is(err, provider.ErrLeaseLost) {
		t.Errorf("Extend after Close: %v; want ErrClosed or ErrLeaseLost", err)
	}
	late := t.subscribe(t.p, 1, work)
	t.close(t.p)
	_, err = late.Receive(ctx, late.lanes, 1)
	t.closed("Subscription.Receive of its provider", err)
	s := t.tryOne(t.p, t.job(work))
	if s.Outcome != provider.OutcomeRefused {
		t.Errorf("Publish after Close: %s; want refused", s.Outcome)
	}
	t.closed("Publish", s.Err)
	_, err = t.p.Jobs.Subscribe(ctx, t.options(longLease, 1, work))
	t.closed("Subscribe", err)
	t.closed("Health", t.p.Health(ctx))
	t.closedStores(ctx)
}

// closedStores checks the capabilities beside Jobs.
func (t *env) closedStores(ctx context.Context) {
	t.Helper()
	if t.p.Stats != nil {
		_, err := t.p.Stats.Queues(ctx)
		t.closed("Stats.Queues", err)
		_, err = t.p.Stats.Queue(ctx, work)
		t.closed("Stats.Queue", err)
	}
	if t.p.Dead != nil {
		_, _, err := t.p.Dead.List(ctx, provider.DeadFilter{}, "")
		t.closed("Dead.List", err)
		_, err = t.p.Dead.Get(ctx, "nowhere")
		t.closed("Dead.Get", err)
		_, err = t.p.Dead.Replay(ctx, "nowhere")
		t.closed("Dead.Replay", err)
		_, err = t.p.Dead.Discard(ctx, "nowhere")
		t.closed("Dead.Discard", err)
	}
	if t.p.Claims != nil && t.round == own {
		_, err := t.p.Claims.Claim(ctx, []provider.Claim{{Key: "a", Owner: "job-1", For: time.Hour}})
		t.closed("Claims.Claim", err)
		t.closed("Claims.Release", t.p.Claims.Release(ctx, "a", "job-1"))
	}
	if t.p.Delays != nil && t.round == own {
		s := t.p.Delays.Hold(ctx, t.some(1, work, delayed(time.Hour)))
		t.closed("Delays.Hold", s[0].Err)
		t.closed("Delays.Promote", t.p.Delays.Promote(ctx, nil))
		_, err := t.p.Delays.Cancel(ctx, "job")
		t.closed("Delays.Cancel", err)
		_, err = t.p.Delays.Held(ctx, work)
		t.closed("Delays.Held", err)
	}
}

func closeOthers(t *env) {
	p := t.open()
	mine, theirs := t.subscribe(t.p, 1, work), t.subscribe(p, 1, other)
	t.publish(p, t.job(work), t.job(other))
	d := mine.one()
	theirs.one()
	theirs.end()
	t.close(p)
	t.ack(d)
	t.publish(t.p, t.job(work))
	t.ack(mine.one())
}

func closeBlocked(t *env) {
	p := t.open()
	w, v := t.subscribe(p, 1, work), t.subscribe(p, 1, other)
	receives := func(s *sub) chan error {
		returned := make(chan error, 1)
		t.start(func() {
			_, err := s.Receive(t.Context(), s.lanes, 1)
			returned <- err
		})
		return returned
	}
	ends := func(what string, returned chan error) {
		t.Helper()
		select {
		case err := <-returned:
			if err != nil || what != "Promote" {
				t.closed(what, err)
			}
		case <-time.After(t.slack(5 * time.Second)):
			t.Fatalf("%s goes on after Close", what)
		}
	}
	first, second := receives(w), receives(v)
	promoted := make(chan error, 1)
	if t.p.Delays != nil && t.round == own {
		t.start(func() { promoted <- p.Delays.Promote(t.Context(), nil) })
	} else {
		promoted <- nil
	}
	time.Sleep(50 * time.Millisecond)
	w.end()
	ends("Receive of a subscription", first)
	t.close(p)
	ends("Receive of a provider", second)
	ends("Promote", promoted)
}

// underWay counts calls that have begun and not ended.
type underWay struct{ begun, ended atomic.Int64 }

func (u *underWay) call(f func()) {
	u.begun.Add(1)
	defer u.ended.Add(1)
	f()
}

// some waits until a call is under way, and reports whether there was one before
// all had ended.
func (u *underWay) some(calls int64) bool {
	for u.ended.Load() < calls {
		if u.begun.Load() > u.ended.Load() {
			return true
		}
		runtime.Gosched()
	}
	return false
}

// overlapTries is how often a check tries to close something while a call is under
// way: where calls take no time at all, none may be.
const overlapTries = 5

// overlapping tries what reports whether a call was under way, until one was. try
// is given a number of its own.
func (t *env) overlapping(try func(n int) bool) {
	t.Helper()
	for n := range overlapTries {
		if try(n) {
			return
		}
	}
	t.Logf("in %d tries no call was under way when Close was called", overlapTries)
}

func closeSettling(t *env) { t.overlapping(t.closeWhileSettling) }

// closeWhileSettling closes a subscription while deliveries are acknowledged: most
// of them before it, as far as they come, and some when it has begun.
func (t *env) closeWhileSettling(n int) bool {
	const jobs, late = 30, 10
	queue := fmt.Sprintf("%s-%d", work, n)
	t.publish(t.p, t.some(jobs, queue)...)
	lease := max(t.h.Lease, 5*time.Second)
	w := t.subscribeFor(t.open(), lease, jobs, queue)
	var acks underWay
	closing := make(chan struct{})
	var mu sync.Mutex
	open := make(map[string]bool)
	var wg sync.WaitGroup
	for i, d := range w.receive(jobs) {
		wg.Go(func() {
			if i >= jobs-late {
				<-closing
			}
			var err error
			acks.call(func() {
				err = t.settle(settlement{call: func(ctx context.Context, d provider.Delivery) error { return d.Ack(ctx, nil) }}, d)
			})
			switch {
			case err == nil:
				return
			case !errors.Is(err, provider.ErrClosed) && !errors.Is(err, provider.ErrLeaseLost):
				t.Errorf("Ack while the subscription closes: %v; want nil or ErrClosed", err)
			}
			mu.Lock()
			defer mu.Unlock()
			open[d.Job().ID] = true
		})
	}
	overlapped := acks.some(jobs - late)
	close(closing)
	w.end()
	wg.Wait()
	heir := t.subscribe(t.p, jobs, queue)
	again := heir.receive(len(open))
	again = append(again, heir.during(lease+time.Second, jobs)...)
	t.once(again)
	for _, d := range again {
		if !open[d.Job().ID] {
			t.Errorf("%s was acknowledged while the subscription closed, and is delivered again", d.Job().ID)
		}
		t.ack(d)
	}
	return overlapped
}

func closePublishing(t *env) { t.overlapping(t.closeWhilePublishing) }

// closeWhilePublishing does the same with a provider and jobs.
func (t *env) closeWhilePublishing(n int) bool {
	const callers, late = 30, 10
	queue := fmt.Sprintf("%s-%d", work, n)
	p := t.open()
	answers := make([]provider.Stored, callers)
	var calls underWay
	closing := make(chan struct{})
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			if i >= callers-late {
				<-closing
			}
			calls.call(func() { answers[i] = t.tryOne(p, t.job(queue)) })
		})
	}
	overlapped := calls.some(callers - late)
	close(closing)
	t.close(p)
	wg.Wait()
	want := 0
	for _, s := range answers {
		if s.Outcome == provider.OutcomeStored {
			want++
		}
	}
	w := t.subscribe(t.p, callers, queue)
	count := tally(append(w.receive(want), w.during(quiet, callers)...))
	for _, s := range answers {
		n := count[s.ID]
		if s.Outcome == provider.OutcomeStored && n != 1 || s.Outcome == provider.OutcomeRefused && n != 0 {
			t.Errorf("%s was %s while the provider closed, and is delivered %d times", s.ID, s.Outcome, n)
		}
	}
	return overlapped
}

func closeHealth(t *env) {
	healthy := func(when string) {
		t.Helper()
		ctx, cancel := t.ctx()
		defer cancel()
		if err := t.p.Health(ctx); err != nil {
			t.Errorf("Health %s: %v", when, err)
		}
	}
	healthy("when opened")
	t.publish(t.p, t.job(work))
	w := t.subscribe(t.p, 1, work)
	d := w.one()
	healthy("with a subscription and a delivery")
	t.ack(d)
	w.end()
	healthy("after a subscription was closed")
}

// closeGoroutines lets a provider do a bit of everything and looks at the
// goroutines that carry the label of this check when all is closed: goroutines
// inherit the labels of those that start them.
func closeGoroutines(t *env) {
	label := fmt.Sprintf("%p", t)
	done := make(chan struct{})
	go pprof.Do(t.Context(), pprof.Labels("providertest", label), func(context.Context) {
		defer close(done)
		exercise(t)
	})
	<-done
	var left string
	for deadline := time.Now().Add(t.slack(2 * time.Second)); ; time.Sleep(20 * time.Millisecond) {
		if left = labelled(label); left == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("goroutines are left after Close:\n%s", left)
		}
	}
}

// exercise opens, uses and closes, without the verbs that end a check: it does
// not run in the check's goroutine.
func exercise(t *env) {
	p, err := t.h.Open()
	if err != nil {
		t.Errorf("open: %v", err)
		return
	}
	defer t.close(p)
	ctx, cancel := t.ctx()
	defer cancel()
	s, err := p.Jobs.Subscribe(ctx, t.options(longLease, 5, work))
	if err != nil {
		t.Errorf("Subscribe: %v", err)
		return
	}
	jobs := t.some(5, work)
	p.Jobs.Publish(ctx, jobs, provider.PublishOptions{})
	if p.Delays != nil {
		p.Delays.Hold(ctx, t.some(3, other, delayed(time.Millisecond)))
		promoting, stop := context.WithCancel(ctx)
		defer stop()
		time.AfterFunc(50*time.Millisecond, stop)
		if err := p.Delays.Promote(promoting, nil); err != nil {
			t.Errorf("Promote: %v", err)
		}
	}
	ds, err := s.Receive(ctx, []string{work}, 5)
	if err != nil || len(ds) == 0 {
		t.Errorf("Receive: %d deliveries, %v", len(ds), err)
		return
	}
	s.Extend(ctx, ds)
	for _, d := range ds {
		if err := d.Ack(ctx, t.some(1, other)); err != nil {
			t.Errorf("Ack: %v", err)
		}
	}
	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	_, _ = s.Receive(short, []string{work}, 5)
	if err := s.Close(ctx); err != nil {
		t.Errorf("Subscription.Close: %v", err)
	}
}

// labelled returns the stacks of goroutines with a label.
func labelled(label string) string {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return ""
	}
	var found []string
	for stack := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(stack, `"providertest":"`+label+`"`) {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}
