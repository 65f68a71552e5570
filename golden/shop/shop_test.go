// Package shop_test runs the generated packages in the folders below: clients,
// a store in memory, handlers, chains across services and packages, dedupe.
package shop_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	chainv1 "github.com/backstage-go/backstage/golden/shop/chain/v1"
	"github.com/backstage-go/backstage/golden/shop/chain/v1/importtasks"
	"github.com/backstage-go/backstage/golden/shop/chain/v1/indextasks"
	"github.com/backstage-go/backstage/golden/shop/chain/v1/othertasks"
	mailv1 "github.com/backstage-go/backstage/golden/shop/mail/v1"
	"github.com/backstage-go/backstage/golden/shop/mail/v1/mailtasks"
	ordersv1 "github.com/backstage-go/backstage/golden/shop/orders/v1"
	"github.com/backstage-go/backstage/golden/shop/orders/v1/ordertasks"
	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/backstagetest"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/emptypb"
)

// diary is what handlers did, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) write(ctx context.Context, format string, args ...any) {
	info, _ := backstage.InfoFrom(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...)+" by "+info.Edge)
}

// take returns the lines since the last call.
func (d *diary) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	return lines
}

type imports struct{ diary *diary }

func (h imports) List(ctx context.Context, in *chainv1.ListRequest, next *importtasks.ListNext) error {
	h.diary.write(ctx, "list %d", in.GetPage())
	if in.GetPage() < 2 {
		next.List(&chainv1.ListRequest{Page: in.GetPage() + 1})
		return nil
	}
	next.Import(&chainv1.ImportRequest{Name: "Ada"})
	next.IndexTasksList(&chainv1.ListRequest{Page: 7})
	next.OtherTasksList(&chainv1.Other{Id: "o"})
	return nil
}

func (h imports) Import(ctx context.Context, in *chainv1.ImportRequest, next *importtasks.ImportNext) error {
	h.diary.write(ctx, "import %s", in.GetName())
	next.MailTasksSend(&mailv1.SendRequest{CustomerId: 5, Text: "welcome"})
	next.MailTasksDigest(&mailv1.DigestRequest{}, backstage.In(time.Hour))
	return nil
}

func (h imports) Plain(ctx context.Context, in *chainv1.ImportRequest) error {
	h.diary.write(ctx, "plain %s", in.GetName())
	return nil
}

type index struct{ diary *diary }

func (h index) List(ctx context.Context, in *chainv1.ListRequest) error {
	h.diary.write(ctx, "index %d", in.GetPage())
	return nil
}

type others struct{ diary *diary }

func (h others) List(ctx context.Context, in *chainv1.Other) error {
	h.diary.write(ctx, "other %s", in.GetId())
	return nil
}

type mails struct{ diary *diary }

func (h mails) Send(ctx context.Context, in *mailv1.SendRequest) error {
	h.diary.write(ctx, "mail %s", in.GetText())
	return nil
}

func (h mails) Digest(ctx context.Context, _ *mailv1.DigestRequest) error {
	h.diary.write(ctx, "digest")
	return nil
}

func TestAChainRunsAcrossServicesAndPackages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := new(diary)
		h := backstagetest.New(t, func(w *backstage.Worker) {
			importtasks.Register(w, imports{d})
			indextasks.Register(w, index{d})
			othertasks.Register(w, others{d})
			mailtasks.Register(w, mails{d})
		})
		client, err := importtasks.NewClient(h.Client)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.List(t.Context(), &chainv1.ListRequest{Page: 1}); err != nil {
			t.Fatal(err)
		}
		h.Drain()
		want := []string{"list 1 by ", "list 2 by List.List"}
		got := d.take()
		if len(got) != 5 {
			t.Fatalf("at once: %q, want two lists, an import, an index and another", got)
		}
		if diff := cmp.Diff(want, got[:2]); diff != "" {
			t.Errorf("pages (-want +got):\n%s", diff)
		}
		h.Advance(90 * time.Second)
		if got := d.take(); len(got) != 1 || got[0][:12] != "mail welcome" {
			t.Errorf("after the delay of the mail's own service: %q, want the mail", got)
		}
		h.Advance(time.Hour)
		if got := d.take(); len(got) != 1 || got[0][:6] != "digest" {
			t.Errorf("after the delay that the edge asked for: %q, want the digest", got)
		}
		if dead := h.Dead(); len(dead) != 0 {
			t.Errorf("dead letters: %+v", dead)
		}
	})
}

func TestAServiceWithoutAHandlerIsAnErrorOfRun(t *testing.T) {
	t.Parallel()
	p, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	worker, err := backstage.NewWorker(p, backstage.WorkerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	importtasks.Register(worker, nil)
	err = worker.Run(t.Context())
	for _, task := range []string{importtasks.ListName, importtasks.ImportName, importtasks.PlainName} {
		if want := "task " + task + ": the handler is nil"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run returned %v, want %q in it", err, want)
		}
	}
}

func TestTheSameTaskOfTwoServicesIsTwoTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := new(diary)
		h := backstagetest.New(t, func(w *backstage.Worker) {
			indextasks.Register(w, index{d})
			othertasks.Register(w, others{d})
		})
		indexes, err := indextasks.NewClient(h.Client)
		if err != nil {
			t.Fatal(err)
		}
		first, err := indexes.List(t.Context(), &chainv1.ListRequest{Page: 3})
		if err != nil {
			t.Fatal(err)
		}
		second, err := indexes.List(t.Context(), &chainv1.ListRequest{Page: 3})
		if err != nil || !second.Duplicate || second.ID != first.ID {
			t.Errorf("second of a key that holds until done: %+v, %v; want a duplicate of %s", second, err, first.ID)
		}
		if _, err := backstage.Enqueue(t.Context(), h.Client, othertasks.ListJob(&chainv1.Other{Id: "x"})); err != nil {
			t.Fatal(err)
		}
		h.Drain()
		if got := d.take(); len(got) != 2 {
			t.Errorf("ran %q, want one of each service", got)
		}
		if third, err := indexes.List(t.Context(), &chainv1.ListRequest{Page: 3}); err != nil || third.Duplicate {
			t.Errorf("after the outcome: %+v, %v; want the key to be free", third, err)
		}
		h.Drain()
	})
}

type orders struct {
	ordertasks.Handler // the other tasks are not run here
	diary              *diary
}

func (h orders) ChargeCard(ctx context.Context, in *ordersv1.ChargeCardRequest, next *ordertasks.ChargeCardNext) error {
	h.diary.write(ctx, "charge %s", in.GetOrderId())
	next.SendReceipt(&ordersv1.SendReceiptRequest{OrderId: in.GetOrderId()})
	for parcel := range in.GetParcels() {
		next.ShipOrder(&ordersv1.ShipOrderRequest{OrderId: in.GetOrderId(), Parcel: parcel})
	}
	return nil
}

func (h orders) SendReceipt(ctx context.Context, in *ordersv1.SendReceiptRequest) error {
	h.diary.write(ctx, "receipt %s", in.GetOrderId())
	return nil
}

func (h orders) ShipOrder(ctx context.Context, in *ordersv1.ShipOrderRequest) error {
	h.diary.write(ctx, "ship %s/%d", in.GetOrderId(), in.GetParcel())
	return nil
}

func (h orders) Sweep(ctx context.Context, _ *emptypb.Empty) error {
	h.diary.write(ctx, "sweep")
	return nil
}

func TestOneBatchMixesTasksAndOneOrderIsChargedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := new(diary)
		h := backstagetest.New(t, func(w *backstage.Worker) { ordertasks.Register(w, orders{diary: d}) })
		receipts, err := h.Client.Enqueue(t.Context(),
			ordertasks.ChargeCardJob(&ordersv1.ChargeCardRequest{OrderId: "A-1", Parcels: 3}),
			ordertasks.SweepJob(&emptypb.Empty{}),
			ordertasks.ChargeCardJob(&ordersv1.ChargeCardRequest{OrderId: "A-1", Parcels: 3}),
		)
		if err != nil {
			t.Fatal(err)
		}
		if !receipts[2].Duplicate || receipts[2].ID != receipts[0].ID {
			t.Errorf("third receipt = %+v, want a duplicate of %s", receipts[2], receipts[0].ID)
		}
		h.Drain()
		if got := d.take(); len(got) != 6 {
			t.Errorf("ran %q, want a charge, a sweep, a receipt and three parcels", got)
		}
		h.Advance(23 * time.Hour)
		again, err := backstage.Enqueue(t.Context(), h.Client, ordertasks.ChargeCardJob(&ordersv1.ChargeCardRequest{OrderId: "A-1"}))
		if err != nil || !again.Duplicate {
			t.Errorf("within the window of 24h: %+v, %v; want a duplicate", again, err)
		}
		h.Advance(2 * time.Hour)
		again, err = backstage.Enqueue(t.Context(), h.Client, ordertasks.ChargeCardJob(&ordersv1.ChargeCardRequest{OrderId: "A-1"}))
		if err != nil || again.Duplicate {
			t.Errorf("after the window of 24h: %+v, %v; want a new job", again, err)
		}
		h.Drain()
	})
}
