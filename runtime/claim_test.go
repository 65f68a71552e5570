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
