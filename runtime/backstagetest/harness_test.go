package backstagetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	ordersv1 "github.com/backstage-go/backstage/golden/shop/orders/v1"
	"github.com/backstage-go/backstage/golden/shop/orders/v1/ordertasks"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/backstagetest"
	"github.com/backstage-go/backstage/runtime/provider"
	"google.golang.org/protobuf/types/known/emptypb"
)

// shop is a handler as a user would write it.
type shop struct {
	receiptFailures int
}

func (s *shop) ChargeCard(_ context.Context, in *ordersv1.ChargeCardRequest, next *ordertasks.ChargeCardNext) error {
	if in.GetCents() < 0 {
		return backstage.Permanent(errors.New("negative amount"))
	}
	next.SendReceipt(&ordersv1.SendReceiptRequest{OrderId: in.GetOrderId()})
	for parcel := range in.GetParcels() {
		next.ShipOrder(&ordersv1.ShipOrderRequest{OrderId: in.GetOrderId(), Parcel: parcel}, backstage.In(time.Hour))
	}
	return nil
}

func (s *shop) SendReceipt(context.Context, *ordersv1.SendReceiptRequest) error {
	if s.receiptFailures--; s.receiptFailures >= 0 {
		return errors.New("mail server is down")
	}
	return nil
}

func (s *shop) ShipOrder(context.Context, *ordersv1.ShipOrderRequest) error { return nil }

func (s *shop) Sweep(context.Context, *emptypb.Empty) error { return nil }

func TestAHandlerIsTestedByCallingIt(t *testing.T) {
	t.Parallel()
	next := new(ordertasks.ChargeCardNext)
	err := new(shop).ChargeCard(t.Context(), &ordersv1.ChargeCardRequest{OrderId: "A-1", Parcels: 1}, next)
	if err != nil {
		t.Fatal(err)
	}
	want := []backstage.Job{
		ordertasks.SendReceiptJob(&ordersv1.SendReceiptRequest{OrderId: "A-1"}),
		ordertasks.ShipOrderJob(&ordersv1.ShipOrderRequest{OrderId: "A-1"}, backstage.In(time.Hour)),
	}
	if diff := backstagetest.Diff(want, backstage.Taken(next)); diff != "" {
		t.Errorf("next jobs (-want +got):\n%s", diff)
	}
}

func TestAChainRunsWithRetriesAndDelays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := backstagetest.New(t, func(w *backstage.Worker) { ordertasks.Register(w, &shop{receiptFailures: 1}) })
		orders, err := ordertasks.NewClient(h.Client)
		if err != nil {
			t.Fatal(err)
		}
		for _, order := range []*ordersv1.ChargeCardRequest{{OrderId: "A-1", Parcels: 2}, {OrderId: "A-2", Cents: -1}} {
			if _, err := orders.ChargeCard(t.Context(), order); err != nil {
				t.Fatal(err)
			}
		}
		h.Drain()
		if held := h.Held("mail") + h.Held("orders"); held != 3 {
			t.Errorf("after the charge %d jobs wait for their time, want the failed receipt and two parcels", held)
		}
		h.Advance(2 * time.Second)
		if runs := h.Runs(ordertasks.SendReceiptName); len(runs) != 2 || runs[1].Job.Attempt != 2 || runs[1].Err != nil {
			t.Errorf("receipt: runs = %+v, want a failure and then a success", runs)
		}
		h.Advance(time.Hour)
		if runs := h.Runs(ordertasks.ShipOrderName); len(runs) != 2 {
			t.Errorf("%d parcels shipped, want 2", len(runs))
		}
		if dead := h.Dead(); len(dead) != 1 || dead[0].Failure.Class != provider.ClassPermanent {
			t.Errorf("dead letters = %+v, want the negative amount", dead)
		}
	})
}

func TestRecorder(t *testing.T) {
	t.Parallel()
	var recorder backstagetest.Recorder
	orders, err := ordertasks.NewClient(&recorder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := orders.ChargeCard(t.Context(), &ordersv1.ChargeCardRequest{OrderId: "A-1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := orders.ChargeCard(t.Context(), &ordersv1.ChargeCardRequest{}); err == nil {
		t.Error("an empty key field is taken, want the error that a client gives")
	}
	recorder.Answer(func(backstage.Job) (backstage.Receipt, error) {
		return backstage.Receipt{}, backstage.ErrQueueFull
	})
	var refused *backstage.EnqueueError
	_, err = orders.SendReceipt(t.Context(), &ordersv1.SendReceiptRequest{OrderId: "A-1"})
	if !errors.As(err, &refused) || !errors.Is(err, backstage.ErrQueueFull) {
		t.Errorf("err = %v, want an EnqueueError with ErrQueueFull", err)
	}
	want := []backstage.Job{ordertasks.ChargeCardJob(&ordersv1.ChargeCardRequest{OrderId: "A-1"})}
	if diff := backstagetest.Diff(want, recorder.Jobs()); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	want[0] = ordertasks.ChargeCardJob(&ordersv1.ChargeCardRequest{OrderId: "A-2"})
	if backstagetest.Diff(want, recorder.Jobs()) == "" {
		t.Error("Diff finds no difference between two payloads")
	}
}
