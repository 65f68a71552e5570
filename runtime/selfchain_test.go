package backstage_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	backstage "github.com/backstage-go/backstage/runtime"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestATaskThatFollowsItselfKeepsItsKeyUntilTheLastIsDone: a job that claims its
// key until done makes way for a next job with the same key, with claims of its
// own and with lent ones.
func TestATaskThatFollowsItselfKeepsItsKeyUntilTheLastIsDone(t *testing.T) {
	t.Parallel()
	for _, lent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p, err := memory.Open(memory.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if lent {
				lender, err := memory.Open(memory.Config{})
				if err != nil {
					t.Fatal(err)
				}
				p.Delays, p.Claims = lender.Lend("test")
			}
			client, err := backstage.NewClient(p, backstage.ClientConfig{})
			if err != nil {
				t.Fatal(err)
			}
			page := backstage.Task[*wrapperspb.Int32Value]{Name: "test.Page", DedupeUntilDone: true,
				Dedupe: func(*wrapperspb.Int32Value) (string, error) { return "sweep", nil }}
			worker, err := backstage.NewWorker(p, backstage.WorkerConfig{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			var pages []int32
			backstage.RegisterChain(worker, backstage.Registration{Name: page.Name}, func(_ context.Context, in *wrapperspb.Int32Value, next *backstage.Next) error {
				if pages = append(pages, in.GetValue()); in.GetValue() < 3 {
					backstage.Add(next, page, "Page.Page", wrapperspb.Int32(in.GetValue()+1))
				}
				return nil
			})
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- worker.Run(ctx) }()
			enqueue := func() backstage.Receipt {
				t.Helper()
				receipt, err := backstage.Enqueue(t.Context(), client, backstage.NewJob(page, wrapperspb.Int32(1)))
				if err != nil {
					t.Fatal(err)
				}
				return receipt
			}
			enqueue()
			synctest.Wait()
			if len(pages) != 3 {
				t.Errorf("lent %t: pages %v ran, want 1 to 3: the chain ended silently", lent, pages)
			}
			if receipt := enqueue(); receipt.Duplicate {
				t.Errorf("lent %t: the key is still held by %s after the last page", lent, receipt.ID)
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestATaskThatFollowsItselfLater has a lender of delays alone: the next job is stored
// there first, and its key, which this provider keeps, must be free by then.
func TestATaskThatFollowsItselfLater(t *testing.T) {
	inBubble(t, func(r *rig) {
		claims := r.p.Claims
		lend(r)
		r.p.Claims = claims
		a := task("a", untilDone)
		var runs counter
		r.start(backstage.WorkerConfig{}, chain("a", func(_ context.Context, _ string, next *backstage.Next) error {
			if runs.add() < 3 {
				add(next, a, "x", backstage.In(time.Minute))
			}
			return nil
		}))
		r.enqueue(job(a, "x"))
		pass(time.Hour)
		if runs.get() != 3 {
			r.Errorf("%d runs, want 3: the chain ended silently", runs.get())
		}
	})
}
