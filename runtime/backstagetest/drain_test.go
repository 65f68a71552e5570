package backstagetest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ordersv1 "github.com/backstage-go/backstage/golden/shop/orders/v1"
	"github.com/backstage-go/backstage/golden/shop/orders/v1/ordertasks"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/backstagetest"
)

// watched is a test whose failure is what a test wants to see.
type watched struct {
	testing.TB
	mu     sync.Mutex
	failed []string
	logged []string
}

func (w *watched) Errorf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, fmt.Sprintf(format, args...))
}

// ended is how Fatalf leaves a call.
type ended struct{}

func (w *watched) Fatalf(format string, args ...any) {
	w.Errorf(format, args...)
	panic(ended{})
}

func (w *watched) Logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logged = append(w.logged, fmt.Sprintf(format, args...))
}

// failure returns with what do fails.
func (w *watched) failure(do func()) string {
	func() {
		defer func() {
			if p := recover(); p != nil && p != (ended{}) {
				panic(p)
			}
		}()
		do()
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.failed, "\n")
}

// only registers some of the shop's tasks.
func only(register ...func(*backstage.Worker)) func(*backstage.Worker) {
	return func(w *backstage.Worker) {
		for _, one := range register {
			one(w)
		}
	}
}

func charge(w *backstage.Worker) { ordertasks.RegisterChargeCard(w, new(shop).ChargeCard) }
func ship(w *backstage.Worker)   { ordertasks.RegisterShipOrder(w, new(shop).ShipOrder) }

func enqueue(t *testing.T, h *backstagetest.Harness, jobs ...backstage.Job) {
	t.Helper()
	if _, err := h.Client.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatal(err)
	}
}

// TestJobsOfOthersStayInTheirQueue, where the test finds them; a line of the log
// says so, once.
func TestJobsOfOthersStayInTheirQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &watched{TB: t}
		h := backstagetest.New(w, only(charge, ship))
		in := time.Now().Add(time.Hour)
		enqueue(t, h,
			ordertasks.ChargeCardJob(&ordersv1.ChargeCardRequest{OrderId: "A-1"}),
			ordertasks.ChargeCardJob(&ordersv1.ChargeCardRequest{OrderId: "A-2", Cents: -1}), // fails, with nothing sent
			ordertasks.SendReceiptJob(&ordersv1.SendReceiptRequest{OrderId: "A-3"}, backstage.At(in)))
		if failed := w.failure(h.Drain); failed != "" {
			t.Fatalf("Drain fails with %q, want it to leave the queue mail alone", failed)
		}
		want := []backstage.Job{
			ordertasks.SendReceiptJob(&ordersv1.SendReceiptRequest{OrderId: "A-3"}, backstage.At(in)),
			ordertasks.SendReceiptJob(&ordersv1.SendReceiptRequest{OrderId: "A-1"}),
		}
		if diff := backstagetest.Diff(want, h.Sent("mail")); diff != "" {
			t.Errorf("sent to mail (-want +got):\n%s", diff)
		}
		if n := len(h.Sent("")); n != 4 {
			t.Errorf("%d jobs sent in all, want 4", n)
		}
		_ = w.failure(h.Drain)
		if len(w.logged) != 1 || !strings.Contains(w.logged[0], `2 of `+ordertasks.SendReceiptName+` in queue "mail"`) {
			t.Errorf("logged %q, want one line that counts the jobs of mail", w.logged)
		}
	})
}

// TestDrainNamesTasksThatNobodyRuns in a queue of the worker.
func TestDrainNamesTasksThatNobodyRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &watched{TB: t}
		h := backstagetest.New(w, only(charge))
		enqueue(t, h, ordertasks.ChargeCardJob(&ordersv1.ChargeCardRequest{OrderId: "A-1"}), ordertasks.ShipOrderJob(&ordersv1.ShipOrderRequest{}))
		failed := w.failure(h.Drain)
		if want := "nobody here runs task " + ordertasks.ShipOrderName + `, which waits in queue "orders": register its handler, or a stub`; !strings.Contains(failed, want) {
			t.Errorf("Drain fails with %q, want %q in it", failed, want)
		}
	})
}

// TestDrainNamesHandlersThatDoNotReturn.
func TestDrainNamesHandlersThatDoNotReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &watched{TB: t}
		h := backstagetest.New(w, func(worker *backstage.Worker) {
			ordertasks.RegisterShipOrder(worker, func(context.Context, *ordersv1.ShipOrderRequest) error {
				time.Sleep(61 * time.Second)
				return nil
			})
		})
		enqueue(t, h, ordertasks.ShipOrderJob(&ordersv1.ShipOrderRequest{}, backstage.WithID("S-1")))
		failed := w.failure(h.Drain)
		if want := "the handler of " + ordertasks.ShipOrderName + " has not returned (job S-1)"; !strings.Contains(failed, want) {
			t.Errorf("Drain fails with %q, want %q in it", failed, want)
		}
	})
}

// TestDrainSaysWhyTheWorkerDoesNotRun, at once.
func TestDrainSaysWhyTheWorkerDoesNotRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &watched{TB: t}
		h := backstagetest.New(w, only(ship, ship))
		began := time.Now()
		failed := w.failure(h.Drain)
		if want := "the worker does not run: task " + ordertasks.ShipOrderName + " is registered twice"; !strings.Contains(failed, want) {
			t.Errorf("Drain fails with %q, want %q in it", failed, want)
		}
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("it took %v", waited)
		}
	})
}

// TestAHarnessFromOutsideOfTheBubble fails the test instead of hanging it.
func TestAHarnessFromOutsideOfTheBubble(t *testing.T) {
	t.Parallel()
	w := &watched{TB: t}
	h := backstagetest.New(w, only(charge))
	synctest.Test(t, func(t *testing.T) {
		for name, do := range map[string]func(){"Drain": h.Drain, "Advance": func() { h.Advance(time.Hour) }} {
			if failed := w.failure(do); !strings.Contains(failed, "call New inside of synctest.Test") {
				t.Errorf("%s fails with %q, want what to do", name, failed)
			}
		}
	})
}

// TestDiffOfWaits: exact for In, to the second for At.
func TestDiffOfWaits(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(time.Hour)
	job := func(opts ...backstage.EnqueueOption) []backstage.Job {
		return []backstage.Job{ordertasks.ShipOrderJob(&ordersv1.ShipOrderRequest{}, opts...)}
	}
	for _, row := range []struct {
		want, got []backstage.Job
		same      bool
	}{
		{job(), job(), true},
		{job(backstage.In(time.Hour)), job(backstage.In(time.Hour)), true},
		{job(backstage.In(time.Hour)), job(backstage.In(time.Hour + 1)), false},
		{job(), job(backstage.In(400 * time.Millisecond)), false},
		{job(backstage.At(at)), job(backstage.At(at.Add(900 * time.Millisecond))), true},
		{job(backstage.At(at)), job(backstage.At(at.Add(time.Minute))), false},
		{job(backstage.In(time.Hour)), job(backstage.At(time.Now().Add(time.Hour))), true},
	} {
		if diff := backstagetest.Diff(row.want, row.got); (diff == "") != row.same {
			t.Errorf("Diff of waits %v %v and %v %v: %q, want the same: %t",
				row.want[0].Delay(), row.want[0].At(), row.got[0].Delay(), row.got[0].At(), diff, row.same)
		}
	}
	if diff := backstagetest.Diff(job(backstage.In(time.Hour)), job(backstage.In(time.Minute))); !strings.Contains(diff, "In(1h0m0s)") {
		t.Errorf("the difference does not read well:\n%s", diff)
	}
}
