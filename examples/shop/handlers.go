package main

import (
	"context"
	"errors"

	shopv1 "github.com/backstage-go/backstage/examples/shop/gen/shop/v1"
	"github.com/backstage-go/backstage/examples/shop/gen/shop/v1/ordertasks"
	backstage "github.com/backstage-go/backstage/runtime"
)

// handlers run the tasks of OrderTasks, whatever the broker. Any of them may be
// killed at any line and run again: its effect goes under the job's id, which is
// the same in every run.
type handlers struct {
	bank   bank
	ledger *ledger
}

// ChargeCard charges the card; the receipt and the parcel follow.
func (h handlers) ChargeCard(ctx context.Context, in *shopv1.ChargeCardRequest, next *ordertasks.ChargeCardNext) error {
	job, _ := backstage.InfoFrom(ctx)
	err := h.bank.charge(ctx, job.ID, job.Attempt, in)
	if errors.Is(err, errRefused) {
		return backstage.Permanent(err) // no retry helps: a dead letter, at once
	}
	if err != nil {
		return err // tried again, with backoff
	}
	next.SendReceipt(&shopv1.SendReceiptRequest{OrderId: in.GetOrderId()})
	next.ShipOrder(&shopv1.ShipOrderRequest{OrderId: in.GetOrderId()})
	return nil
}

// SendReceipt mails the receipt.
func (h handlers) SendReceipt(ctx context.Context, in *shopv1.SendReceiptRequest) error {
	job, _ := backstage.InfoFrom(ctx)
	return h.ledger.once(ctx, job.ID, receipt, in.GetOrderId())
}

// ShipOrder books the parcel.
func (h handlers) ShipOrder(ctx context.Context, in *shopv1.ShipOrderRequest) error {
	job, _ := backstage.InfoFrom(ctx)
	return h.ledger.once(ctx, job.ID, parcel, in.GetOrderId())
}
