package batch_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/backstage-go/backstage/cmd/backstagectl/internal/batch"
	"github.com/backstage-go/backstage/cmd/backstagectl/internal/ctltest"
	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime/provider"
)

// rig is a store with dead letters.
type rig struct {
	*testing.T
	p *provider.Provider
}

func newRig(t *testing.T) *rig {
	t.Helper()
	p, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return &rig{t, p}
}

func (r *rig) bury(jobs ...provider.Job) {
	r.Helper()
	ctltest.Bury(r, r.p, ctltest.Failed(), jobs...)
}

func (r *rig) letters() []provider.DeadLetter {
	r.Helper()
	return ctltest.Letters(r, r.p)
}

// plan is a plan of all letters, oldest first.
func (r *rig) plan(action batch.Action) *batch.Plan {
	r.Helper()
	p := &batch.Plan{Action: action}
	letters := r.letters()
	for i := range letters {
		p.Letters = append([]batch.Letter{batch.LetterOf(&letters[i])}, p.Letters...)
	}
	return p
}

// run does a plan, and returns the outcomes in order.
func (r *rig) run(dead provider.DeadLetters, plan *batch.Plan, journal *batch.Journal) ([]string, error) {
	r.Helper()
	var got []string
	run := &batch.Run{Dead: dead, Plan: plan, Journal: journal, Timeout: time.Minute, Report: func(results []batch.Result) {
		for _, result := range results {
			text := result.Address + " " + string(result.Outcome)
			if result.Holder != "" {
				text += " " + result.Holder
			}
			if result.Error != "" {
				text += ": " + result.Error
			}
			got = append(got, text)
		}
	}}
	return got, run.Do(r.Context())
}

func (r *rig) want(got []string, err error, want ...string) {
	r.Helper()
	if err != nil {
		r.Errorf("error: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("(-want +got)\n%s", diff)
	}
}

// journal keeps a plan in a new file.
func (r *rig) journal(plan *batch.Plan) *batch.Journal {
	r.Helper()
	return create(r.T, filepath.Join(r.TempDir(), "journal"), *plan)
}

func TestEachLetterIsReplayedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bury(ctltest.Jobs(3)...)
	plan := r.plan(batch.Replay)
	journal := r.journal(plan)
	if _, err := r.p.Dead.Discard(t.Context(), "2"); err != nil { // somebody else
		t.Fatal(err)
	}
	got, err := r.run(r.p.Dead, plan, journal)
	r.want(got, err, "2 gone", "1 replayed", "3 replayed")
	// Those that were replayed die again, and more die beside them.
	ctltest.Bury(t, r.p, ctltest.Failed(), ctltest.Job("B-1"))
	buryAgain(t, r.p, 2)
	before := r.letters()
	got, err = r.run(r.p.Dead, plan, journal)
	r.want(got, err)
	got, err = r.run(r.p.Dead, plan, nil) // not even without what was written down
	r.want(got, err, "1 gone", "2 gone", "3 gone")
	if diff := cmp.Diff(len(before), len(r.letters())); diff != "" || len(before) != 3 {
		t.Errorf("%d letters are dead now, %d before", len(r.letters()), len(before))
	}
}

// buryAgain dead-letters jobs that are in their queue already.
func buryAgain(t *testing.T, p *provider.Provider, n int) {
	t.Helper()
	sub, err := p.Jobs.Subscribe(t.Context(), provider.SubscribeOptions{Worker: "again", Lanes: []provider.Lane{{Queue: "orders", Slots: 1}}, MaxUnsettled: n, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for n > 0 {
		deliveries, err := sub.Receive(t.Context(), []string{"orders"}, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range deliveries {
			if err := d.DeadLetter(t.Context(), ctltest.Failed()); err != nil {
				t.Fatal(err)
			}
			n--
		}
	}
	if err := sub.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bury(ctltest.Jobs(2)...)
	got, err := r.run(r.p.Dead, r.plan(batch.Discard), nil)
	r.want(got, err, "1 discarded", "2 discarded")
	if left := r.letters(); len(left) > 0 {
		t.Errorf("%d letters are left", len(left))
	}
	numbers, err := r.p.Stats.Queue(t.Context(), "orders")
	if depth, _ := numbers.Depth.Get(); err != nil || depth != 0 {
		t.Errorf("%d jobs are in the queue (%v), want none", depth, err)
	}
}

func TestAHeldKeyIsADuplicateUntilItIsFree(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	keyed := func(id string) provider.Job {
		j := ctltest.Job(id)
		j.Dedupe = provider.Dedupe{Key: "k", UntilDone: true}
		return j
	}
	r.bury(keyed("A-1"))
	plan := r.plan(batch.Replay)
	journal := r.journal(plan)
	if s := r.p.Jobs.Publish(t.Context(), []provider.Job{keyed("A-2")}, provider.PublishOptions{}); s[0].Outcome != provider.OutcomeStored {
		t.Fatal(s)
	}
	got, err := r.run(r.p.Dead, plan, journal)
	r.want(got, err, "1 duplicate A-2")
	buryAgain(t, r.p, 1)
	got, err = r.run(r.p.Dead, plan, journal)
	r.want(got, err, "1 replayed")
}

// strange is dead letters that are not as they were, or do not answer as they should.
type strange struct {
	provider.DeadLetters
	get    func(provider.DeadLetter, error) (provider.DeadLetter, error)
	replay func(addresses []string) ([]provider.Stored, error)
}

func (s *strange) Get(ctx context.Context, address string) (provider.DeadLetter, error) {
	letter, err := s.DeadLetters.Get(ctx, address)
	if s.get != nil {
		return s.get(letter, err)
	}
	return letter, err
}

func (s *strange) Replay(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
	if s.replay != nil {
		return s.replay(addresses)
	}
	return s.DeadLetters.Replay(ctx, addresses...)
}

var errBoom = errors.New("boom")

func TestALetterThatIsNotThePlannedOneIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*provider.DeadLetter){
		"of another job":   func(l *provider.DeadLetter) { l.Job.ID = "B-1" },
		"of another death": func(l *provider.DeadLetter) { l.At = l.At.Add(1) },
		"replayed before":  func(l *provider.DeadLetter) { l.Job.Counters.Replays++ },
		"no record":        func(l *provider.DeadLetter) { l.Raw, l.Job = []byte{}, provider.Job{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.bury(ctltest.Job("A-1"))
			dead := &strange{DeadLetters: r.p.Dead, get: func(l provider.DeadLetter, err error) (provider.DeadLetter, error) {
				change(&l)
				return l, err
			}}
			for _, action := range []batch.Action{batch.Replay, batch.Discard} {
				got, err := r.run(dead, r.plan(action), nil)
				r.want(got, err, "1 gone")
			}
			if len(r.letters()) != 1 {
				t.Error("it was touched")
			}
		})
	}
}

func TestWhatCannotBeReplayedIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*provider.DeadLetter)
		want   string
	}{
		"no record": {func(l *provider.DeadLetter) { l.Raw = []byte("x") },
			"1 refused: it is no job record, which no worker could run; it can only be discarded"},
		"a newer record": {func(l *provider.DeadLetter) { l.Job.Format = 2 },
			"1 refused: its record has format 2, and this program knows 1: use the backstagectl of a newer version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.bury(ctltest.Job("A-1"))
			dead := &strange{DeadLetters: r.p.Dead, get: func(l provider.DeadLetter, err error) (provider.DeadLetter, error) {
				c.change(&l)
				return l, err
			}}
			got, err := r.run(dead, r.plan(batch.Replay), nil)
			r.want(got, err, c.want)
			got, err = r.run(dead, r.plan(batch.Discard), nil)
			r.want(got, err, "1 discarded")
		})
	}
}

func TestALostAnswerIsFoundOutAbout(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bury(ctltest.Jobs(2)...)
	plan := r.plan(batch.Replay)
	journal := r.journal(plan)
	dead := &strange{DeadLetters: r.p.Dead, replay: func(addresses []string) ([]provider.Stored, error) {
		if _, err := r.p.Dead.Replay(t.Context(), addresses[0]); err != nil {
			return nil, err
		}
		return []provider.Stored{{Err: errBoom}, {ID: "A-002", Err: errBoom}}, nil
	}}
	got, err := r.run(dead, plan, journal)
	r.want(got, err, "1 replayed", "2 unknown: boom")
	got, err = r.run(r.p.Dead, plan, journal)
	r.want(got, err, "2 replayed")
}

func TestAFailedCallEndsTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bury(ctltest.Jobs(batch.MaxStep + 3)...)
	plan := r.plan(batch.Replay)
	journal := r.journal(plan)
	calls := 0
	dead := &strange{DeadLetters: r.p.Dead, replay: func(addresses []string) ([]provider.Stored, error) {
		calls++
		stored, err := r.p.Dead.Replay(t.Context(), addresses[:2]...)
		return append(stored, provider.Stored{Outcome: provider.OutcomeRefused, Err: errBoom}), errors.Join(err, errBoom)
	}}
	got, err := r.run(dead, plan, journal)
	if !errors.Is(err, errBoom) || calls != 1 || len(got) != batch.MaxStep {
		t.Fatalf("%d calls, %d results, error %v; want one call of %d, and its error", calls, len(got), err, batch.MaxStep)
	}
	r.want(got[:4], nil, "1 replayed", "2 replayed", "3 refused: boom", "4 unknown: boom")
	unreadable := &strange{DeadLetters: r.p.Dead, get: func(l provider.DeadLetter, err error) (provider.DeadLetter, error) { return l, errBoom }}
	if got, err := r.run(unreadable, plan, journal); !errors.Is(err, errBoom) || len(got) > 0 {
		t.Errorf("letters that cannot be read: %v, %v; want no results, and the error", got, err)
	}
	if got, err := r.run(r.p.Dead, plan, journal); err != nil || len(got) != batch.MaxStep+1 || len(r.letters()) != 0 {
		t.Errorf("at last: %d results, %d letters left, %v", len(got), len(r.letters()), err)
	}
}

func TestTheRateIsKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate     float64
		letters  int
		slow     time.Duration // each call
		least    time.Duration
		most     time.Duration
		stepsAre int
	}{
		{rate: 10, letters: 20, least: 1900 * time.Millisecond, most: 2 * time.Second, stepsAre: 1},
		{rate: 0.5, letters: 3, least: 4 * time.Second, most: 4 * time.Second, stepsAre: 1},
		{rate: 100, letters: 250, least: 2400 * time.Millisecond, most: 2500 * time.Millisecond, stepsAre: 10},
		{rate: 5000, letters: 250, least: 40 * time.Millisecond, most: 50 * time.Millisecond, stepsAre: 100},
		{rate: 0, letters: 250, stepsAre: 100},
		{rate: 10, letters: 5, slow: time.Second, least: 5 * time.Second, most: 5 * time.Second, stepsAre: 1},
	} {
		t.Run(fmt.Sprint(c.rate, c.slow), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.bury(ctltest.Jobs(c.letters)...)
				var steps []int
				dead := &strange{DeadLetters: r.p.Dead, replay: func(addresses []string) ([]provider.Stored, error) {
					steps = append(steps, len(addresses))
					time.Sleep(c.slow)
					return r.p.Dead.Replay(t.Context(), addresses...)
				}}
				plan := r.plan(batch.Replay)
				begun := time.Now()
				run := &batch.Run{Dead: dead, Plan: plan, Rate: c.rate, Timeout: time.Minute, Report: func([]batch.Result) {}}
				if err := run.Do(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begun); took < c.least || took > c.most || steps[0] != c.stepsAre {
					t.Errorf("%d letters took %v in steps of %v; want %v to %v, in steps of %d", c.letters, took, steps, c.least, c.most, c.stepsAre)
				}
				if len(r.letters()) > 0 {
					t.Error("there are letters left")
				}
				if err := r.p.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestAnInterruptedRunEndsBetweenTwoSteps(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bury(ctltest.Jobs(batch.MaxStep * 3)...)
	plan := r.plan(batch.Replay)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	run := &batch.Run{Dead: &strange{DeadLetters: r.p.Dead, replay: func(addresses []string) ([]provider.Stored, error) {
		cancel()
		return r.p.Dead.Replay(t.Context(), addresses...)
	}}, Plan: plan, Timeout: time.Minute, Report: func(results []batch.Result) {
		for _, result := range results {
			if result.Outcome == batch.Replayed {
				n++
			}
		}
	}}
	if err := run.Do(ctx); err == nil || n != batch.MaxStep || len(r.letters()) != 2*batch.MaxStep {
		t.Errorf("%d reported as replayed, %d letters left, error %v; want one step", n, len(r.letters()), err)
	}
}
