package backstage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// flakyDelays are lent ones that fail while told to.
type flakyDelays struct {
	provider.Delays
	promote func() error
	hold    func(jobs []provider.Job) []provider.Stored
}

func (d *flakyDelays) Promote(ctx context.Context, publish provider.Publish) error {
	if err := d.promote(); err != nil {
		return err
	}
	return d.Delays.Promote(ctx, publish)
}

func (d *flakyDelays) Hold(ctx context.Context, jobs []provider.Job) []provider.Stored {
	if d.hold != nil {
		if stored := d.hold(jobs); stored != nil {
			return stored
		}
	}
	return d.Delays.Hold(ctx, jobs)
}

// lend gives the rig Delays and Claims of a second store, and returns the lender.
func lend(r *rig) (*memory.Store, *flakyDelays) {
	store := memory.NewStore()
	delays := &flakyDelays{promote: func() error { return nil }}
	delays.Delays, r.p.Claims = r.open(store).Lend("rig")
	r.p.Delays = delays
	return store, delays
}

func TestPromoterThatFailsComesBack(t *testing.T) {
	inBubble(t, func(r *rig) {
		_, delays := lend(r)
		var fails, runs counter
		delays.promote = func() error {
			if fails.add() <= 10 {
				return errBoom
			}
			return nil
		}
		w := r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { runs.add(); return nil }))
		r.enqueue(job(task("a"), "", backstage.In(time.Second)))
		pass(30 * time.Second)
		if err := w.Health(r.Context()); !errors.Is(err, errBoom) {
			r.Errorf("health while nothing is promoted = %v, want the reason", err)
		}
		pass(time.Minute)
		if err := w.Health(r.Context()); err != nil || runs.get() != 1 {
			r.Errorf("after the promoter came back: health %v, %d runs; want nil and 1", err, runs.get())
		}
		if failed, _ := eventsOf[backstage.PromoterFailed](r.events); len(failed) != 10 {
			r.Errorf("%d events PromoterFailed, want 10", len(failed))
		}
	})
}

// TestHoldThatFailsIsTriedAgain: the source is not acked before its copy is held.
func TestHoldThatFailsIsTriedAgain(t *testing.T) {
	inBubble(t, func(r *rig) {
		_, delays := lend(r)
		var holds, runs counter
		delays.hold = func(jobs []provider.Job) []provider.Stored {
			switch holds.add() {
			case 1:
				return []provider.Stored{{ID: jobs[0].ID, Outcome: provider.OutcomeRefused, Err: errBoom}}
			case 2:
				return []provider.Stored{{ID: jobs[0].ID, Outcome: provider.OutcomeUnknown}}
			}
			return nil
		}
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error {
			if runs.add() == 1 {
				return backstage.RetryAfter(errBoom, time.Second)
			}
			return nil
		}))
		id := r.enqueue(job(task("a"), "")).ID
		pass(time.Minute)
		r.wantLife(id, "enqueued: stored", "run 1", "failed", "not retried", "not retried", "retried as failed", "run 2", "done", "acked")
		r.wantNothingLeft()
	})
}

// TestDueJobsWaitForAPromoter: with no worker up they are not lost, and seen.
func TestDueJobsWaitForAPromoter(t *testing.T) {
	inBubble(t, func(r *rig) {
		lend(r)
		var runs counter
		r.enqueue(job(task("a"), "", backstage.In(time.Minute)))
		pass(time.Hour)
		held, err := r.p.Delays.Held(r.Context(), backstage.DefaultQueue)
		if n, known := held.Get(); err != nil || !known || n != 1 {
			r.Errorf("held = %v, %v; want 1", held, err)
		}
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { runs.add(); return nil }))
		pass(5 * time.Second)
		if runs.get() != 1 {
			r.Errorf("%d runs, want 1", runs.get())
		}
	})
}

// TestLongestDelay: what a store cannot keep is refused by name at enqueue, and a
// retry comes early rather than never.
func TestLongestDelay(t *testing.T) {
	inBubble(t, func(r *rig) {
		lend(r)
		r.p.Delays = &shortDelays{r.p.Delays}
		_, err := backstage.Enqueue(r.Context(), r.client, job(task("a"), "", backstage.In(2*time.Hour)))
		var missing *backstage.MissingError
		if !errors.As(err, &missing) || missing.Capability != "delays beyond 1h0m0s" {
			r.Errorf("a delay beyond the longest: %v, want a *MissingError", err)
		}
		runs := newLedger()
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error {
			runs.write("")
			return backstage.RetryAfter(errBoom, 24*time.Hour)
		}, backstage.Policy{MaxAttempts: 2}))
		r.enqueue(job(task("a"), ""))
		pass(2 * time.Hour)
		if at := runs.at(); len(at) != 2 || at[1] < time.Hour {
			r.Errorf("runs at %v, want a second one after the longest delay of 1h", at)
		}
	})
}

type shortDelays struct{ provider.Delays }

func (d *shortDelays) Facts() provider.DelayFacts {
	f := d.Delays.Facts()
	f.Longest = time.Hour
	return f
}

func (d *shortDelays) Hold(ctx context.Context, jobs []provider.Job) []provider.Stored {
	for _, j := range jobs {
		if j.Delay > time.Hour {
			return []provider.Stored{{ID: j.ID, Outcome: provider.OutcomeRefused, Err: errBoom}}
		}
	}
	return d.Delays.Hold(ctx, jobs)
}

func TestReplay(t *testing.T) {
	inRounds(t, func(r *rig) {
		var runs counter
		a := task("a", window(24*time.Hour))
		w := r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { return errBoom }, backstage.Policy{MaxAttempts: 2}))
		id := r.enqueue(job(a, "x")).ID
		pass(time.Hour)
		letter := r.onlyDead()
		if err := w.stop(); err != nil {
			r.Fatal(err)
		}

		holder := r.enqueue(job(a, "x"))
		if holder.Duplicate {
			r.Fatalf("a dead-lettered job keeps its key")
		}
		receipts, err := backstage.Replay(r.Context(), r.p, letter.Address, "nowhere")
		if got := receipts[0]; !got.Duplicate || got.ID != holder.ID {
			r.Errorf("replay while %s holds the key: %+v, want a duplicate of it", holder.ID, got)
		}
		if got := receipts[1]; got.Outcome != backstage.Refused || !errors.Is(got.Err, provider.ErrNotFound) || !errors.Is(err, provider.ErrNotFound) {
			r.Errorf("replay of nothing: %+v, %v; want refused as not found", got, err)
		}
		if len(r.dead()) != 1 {
			r.Error("a letter whose replay is a duplicate is gone")
		}

		pass(25 * time.Hour)
		receipts, err = backstage.Replay(r.Context(), r.p, letter.Address)
		if err != nil || receipts[0] != (backstage.Receipt{ID: id, Outcome: backstage.Stored}) {
			r.Fatalf("replay: %+v, %v; want stored under its id", receipts, err)
		}
		if got := r.enqueue(job(a, "x")); !got.Duplicate || got.ID != id {
			r.Errorf("enqueue after the replay: %+v, want a duplicate of the replayed job", got)
		}
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
			if info, _ := backstage.InfoFrom(ctx); info.ID == id && (info.Attempt != 1 || info.Replays != 1) {
				r.Errorf("replayed: attempt %d, replays %d; want 1 and 1", info.Attempt, info.Replays)
			}
			runs.add()
			return nil
		}))
		pass(time.Minute)
		if runs.get() != 2 { // the holder's and the replayed one
			r.Errorf("%d runs after the replay, want 2", runs.get())
		}
		r.wantNothingLeft()
		r.p.Dead = nil
		var missing *backstage.MissingError
		if _, err := backstage.Replay(r.Context(), r.p, "x"); !errors.As(err, &missing) {
			r.Errorf("replay without dead letters: %v, want a *MissingError", err)
		}
	})
}

// TestHoldIsNotRepeated while the ack of the source fails: each copy that is
// promoted meanwhile would run.
func TestHoldIsNotRepeated(t *testing.T) {
	inBubble(t, func(r *rig) {
		_, delays := lend(r)
		var holds, acks counter
		delays.hold = func([]provider.Job) []provider.Stored { holds.add(); return nil }
		r.hooks.settle = func(_ string, _ provider.Delivery, do func() error) error {
			if acks.add() <= 5 {
				return errBoom
			}
			return do()
		}
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
			if info, _ := backstage.InfoFrom(ctx); info.Attempt == 1 {
				return backstage.RetryAfter(errBoom, time.Millisecond)
			}
			return nil
		}))
		r.enqueue(job(task("a"), ""))
		pass(time.Minute)
		if holds.get() != 1 {
			r.Errorf("the copy was held %d times, want once", holds.get())
		}
		r.wantNothingLeft()
	})
}

// slowDelays are lent ones that take a while to forget what was published.
type slowDelays struct {
	provider.Delays
	forgets func(forgotten func())
}

func (d *slowDelays) Promote(ctx context.Context, publish provider.Publish) error {
	return d.Delays.Promote(ctx, func(ctx context.Context, jobs []provider.Job) []provider.Stored {
		within, forgotten := context.WithCancel(context.WithoutCancel(ctx))
		defer d.forgets(forgotten)
		return publish(within, jobs)
	})
}

// TestAPromotedJobStartsWhenItIsForgotten, because the lender would promote it again as
// if it had never run, should it end its process before.
func TestAPromotedJobStartsWhenItIsForgotten(t *testing.T) {
	for name, c := range map[string]struct{ forgets, want time.Duration }{
		"soon":  {2 * time.Second, 2 * time.Second},
		"never": {time.Hour, backstage.DefaultLease / 3},
	} {
		inBubbleSub(t, name, func(r *rig) {
			_, delays := lend(r)
			r.p.Delays = &slowDelays{delays, func(forgotten func()) { time.AfterFunc(c.forgets, forgotten) }}
			began := time.Now()
			ran := make(chan time.Duration, 1)
			r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error {
				ran <- time.Since(began)
				return nil
			}))
			r.enqueue(job(task("a"), "x", backstage.In(time.Minute)))
			if waited := <-ran - time.Minute; waited < c.want || waited > c.want+time.Second {
				r.Errorf("the job started %v after it was published, want %v", waited, c.want)
			}
			pass(2 * time.Hour)
			r.wantNothingLeft()
		})
	}
}
