package backstage_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// keyed is a task with a dedupe key, for an hour.
func keyed(name string) backstage.Task[*text] {
	return task(name, func(t *backstage.Task[*text]) { t.Dedupe, t.DedupeFor = keyOf, time.Hour })
}

// TestAClaimLivesWhileItsClientWaitsForRoom: a full queue holds a client back for
// longer than a pending claim lasts.
func TestAClaimLivesWhileItsClientWaitsForRoom(t *testing.T) {
	inBubble(t, func(r *rig) {
		lend(r)
		r.hooks.publish = func(jobs []provider.Job, _ provider.PublishOptions, do func() []provider.Stored) []provider.Stored {
			if jobs[0].ID == "slow" {
				time.Sleep(10 * time.Minute)
			}
			return do()
		}
		first := make(chan backstage.Receipt, 1)
		go func() { first <- r.enqueue(job(keyed("a"), "x", backstage.WithID("slow"))) }()
		time.Sleep(5 * time.Minute)
		if second := r.enqueue(job(keyed("a"), "x")); !second.Duplicate || second.ID != "slow" {
			r.Errorf("second of the key = %+v, want a duplicate of the first, once that is stored", second)
		}
		if got := <-first; got.Outcome != backstage.Stored {
			r.Errorf("first of the key = %+v, want it stored", got)
		}
	})
}

// TestARefusedRetryOfAStoredJobKeepsItsClaim: the claim is the stored job's.
func TestARefusedRetryOfAStoredJobKeepsItsClaim(t *testing.T) {
	inBubble(t, func(r *rig) {
		lend(r)
		same := job(keyed("a"), "x")
		r.enqueue(same)
		r.hooks.publish = func(jobs []provider.Job, _ provider.PublishOptions, do func() []provider.Stored) []provider.Stored {
			return []provider.Stored{{ID: jobs[0].ID, Outcome: provider.OutcomeRefused, Err: provider.ErrQueueFull}}
		}
		if _, err := backstage.Enqueue(r.Context(), r.client, same); !errors.Is(err, backstage.ErrQueueFull) {
			r.Fatalf("the same job again: %v, want it refused", err)
		}
		r.hooks.publish = nil
		if other := r.enqueue(job(keyed("a"), "x")); !other.Duplicate || other.ID != same.ID() {
			r.Errorf("another job of the key = %+v, want a duplicate of the stored one", other)
		}
	})
}

// TestCancellingFreesALentClaim, of a job that the provider holds itself.
func TestCancellingFreesALentClaim(t *testing.T) {
	inBubble(t, func(r *rig) {
		_, r.p.Claims = r.open(memory.NewStore()).Lend("rig")
		first := r.enqueue(job(keyed("a"), "x", backstage.In(time.Minute)))
		if found, err := r.client.Cancel(r.Context(), first.ID); !found || err != nil {
			r.Fatalf("cancel: %t, %v", found, err)
		}
		if again := r.enqueue(job(keyed("a"), "x")); again.Duplicate {
			r.Errorf("after the cancellation the key is still held by %s", again.ID)
		}
	})
}

// TestAFailingNextJobDoesNotStoreItsSiblingsAgain where a lender stores them.
func TestAFailingNextJobDoesNotStoreItsSiblingsAgain(t *testing.T) {
	inBubble(t, func(r *rig) {
		_, delays := lend(r)
		var tries, held counter
		delays.hold = func(jobs []provider.Job) []provider.Stored {
			stored := make([]provider.Stored, len(jobs))
			for i, j := range jobs {
				switch {
				case j.Task == "bad" && tries.add() <= 5:
					stored[i] = provider.Stored{ID: j.ID, Outcome: provider.OutcomeRefused, Err: errBoom}
				default:
					if j.Task == "good" {
						held.add()
					}
					stored[i] = delays.Delays.Hold(context.Background(), jobs[i:i+1])[0]
				}
			}
			return stored
		}
		w := r.newWorker(backstage.WorkerConfig{})
		backstage.RegisterChain(w, backstage.Registration{Name: "parent"}, func(_ context.Context, _ *text, next *backstage.Next) error {
			backstage.Add(next, task("good"), "Parent.Good", &text{}, backstage.In(time.Hour))
			backstage.Add(next, task("bad"), "Parent.Bad", &text{}, backstage.In(time.Hour))
			return nil
		})
		ctx, stop := context.WithCancel(r.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		r.enqueue(job(task("parent"), ""))
		pass(time.Minute)
		stop()
		if err := <-done; err != nil {
			r.Error(err)
		}
		if tries.get() < 6 || held.get() != 1 {
			r.Errorf("the good next job was stored %d times over %d tries, want once", held.get(), tries.get())
		}
	})
}

// TestAnInterceptorsErrorIsNotLostBesideItsReceipts.
func TestAnInterceptorsErrorIsNotLostBesideItsReceipts(t *testing.T) {
	inBubble(t, func(r *rig) {
		client := r.newClient(backstage.ClientConfig{Interceptors: []backstage.EnqueueInterceptor{
			func(next backstage.EnqueueFunc) backstage.EnqueueFunc {
				return func(ctx context.Context, jobs []backstage.Job) ([]backstage.Receipt, error) {
					receipts, err := next(ctx, jobs)
					return receipts, errors.Join(err, errBoom)
				}
			},
		}})
		if _, err := backstage.Enqueue(r.Context(), client, job(task("a"), "")); !errors.Is(err, errBoom) {
			r.Errorf("err = %v, want the interceptor's", err)
		}
	})
}

func TestStrictPriorityNeedsQueues(t *testing.T) {
	inBubble(t, func(r *rig) {
		if _, err := backstage.NewWorker(r.p, backstage.WorkerConfig{StrictPriority: true}); err == nil {
			r.Error("strict priority without queues is taken; in which order would they be served?")
		}
	})
}

func TestHealthTellsOfAPromoterThatEndsByItself(t *testing.T) {
	inBubble(t, func(r *rig) {
		_, delays := lend(r)
		r.p.Delays = &endingDelays{delays}
		w := r.start(backstage.WorkerConfig{}, handle("a", nothing))
		for range 100 {
			pass(time.Second)
			if err := w.Health(r.Context()); err == nil {
				r.Fatal("health is nil while nothing is promoted")
			}
		}
	})
}

// endingDelays stop promoting at once, without an error.
type endingDelays struct{ provider.Delays }

func (endingDelays) Promote(context.Context, provider.Publish) error { return nil }

// wantFree wants a key to be free a good while after its job ended.
func wantFree(r *rig, j backstage.Job) {
	r.Helper()
	pass(time.Hour)
	if got := r.enqueue(j); got.Duplicate {
		r.Errorf("an hour after its end the key is still held by %s", got.ID)
	}
}

// TestAnAckWhoseAnswerIsLostFreesTheClaim: the next try is told that it is settled, or
// lost, and nobody else would free it.
func TestAnAckWhoseAnswerIsLostFreesTheClaim(t *testing.T) {
	for name, second := range map[string]error{"settled": nil, "lost": &provider.LostError{Stored: provider.OutcomeUnknown}} {
		t.Run(name, func(t *testing.T) {
			inRounds(t, func(r *rig) {
				var acks counter
				r.hooks.settle = func(_ string, _ provider.Delivery, do func() error) error {
					switch n := acks.add(); {
					case n == 1:
						_ = do()
						return errors.New("the answer got lost")
					case n == 2 && second != nil:
						return second
					}
					return do()
				}
				a := task("a", untilDone)
				r.start(backstage.WorkerConfig{}, handle("a", nothing))
				r.enqueue(job(a, "x"))
				wantFree(r, job(a, "x"))
			})
		})
	}
}

// TestARetryThatEndsBeforeItsSourceIsAcknowledged: the copy of a retry runs to its end
// while the answer to the ack of its source is on its way. Nobody takes the key then.
func TestARetryThatEndsBeforeItsSourceIsAcknowledged(t *testing.T) {
	for name, ownClaims := range map[string]bool{"lent claims": false, "own claims": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				lender := r.open(memory.NewStore())
				other := r.other()
				for _, p := range []*provider.Provider{r.p, other.p} {
					own := p.Claims
					p.Delays, p.Claims = lender.Lend("x")
					if ownClaims {
						p.Claims = own
					}
				}
				var acks, runs counter
				r.hooks.settle = func(verb string, _ provider.Delivery, do func() error) error {
					err := do()
					if verb == "ack" && acks.add() == 1 {
						time.Sleep(2 * time.Second)
					}
					return err
				}
				got := false
				r.hooks.receive = func(ctx context.Context, _ []string, _ int, do func() ([]provider.Delivery, error)) ([]provider.Delivery, error) {
					if got { // the copy is for the other worker
						<-ctx.Done()
						return nil, ctx.Err()
					}
					list, err := do()
					got = len(list) > 0
					return list, err
				}
				a := task("a", untilDone)
				handler := handle("a", func(context.Context, string) error {
					if runs.add() == 1 {
						return backstage.RetryAfter(errBoom, time.Second)
					}
					return nil
				})
				r.start(backstage.WorkerConfig{}, handler)
				r.enqueue(job(a, "x"))
				synctest.Wait()
				other.start(backstage.WorkerConfig{}, handler)
				wantFree(r, job(a, "x"))
			})
		})
	}
}

// TestAClaimHoldsThroughALongRetry has a provider whose own claim ends with the ack of
// the source, and a task that may grow old.
func TestAClaimHoldsThroughALongRetry(t *testing.T) {
	inBubble(t, func(r *rig) {
		const day = 24 * time.Hour
		claims := r.p.Claims
		lend(r)
		r.p.Claims = claims
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
			if info, _ := backstage.InfoFrom(ctx); info.Attempt == 1 {
				return backstage.RetryAfter(errBoom, 30*day)
			}
			return nil
		}, backstage.Policy{MaxAge: 60 * day}))
		a := task("a", untilDone)
		first := r.enqueue(job(a, "x"))
		pass(20 * day)
		if got := r.enqueue(job(a, "x")); !got.Duplicate || got.ID != first.ID {
			r.Errorf("while the job waits for its retry: %+v, want a duplicate of %s", got, first.ID)
		}
	})
}
