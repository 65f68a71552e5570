package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	quickstartv1 "github.com/backstage-go/backstage/examples/quickstart/gen/quickstart/v1"
	"github.com/backstage-go/backstage/examples/quickstart/gen/quickstart/v1/ordertasks"
	"github.com/backstage-go/backstage/runtime"
)

// shop handles the tasks of OrderTasks.
type shop struct {
	ledger *ledger
	// dieAfter is the order after whose charge the process kills itself, to show
	// what happens then. Empty: none.
	dieAfter string
}

// ChargeCard charges the card and lets the receipt follow.
func (s *shop) ChargeCard(ctx context.Context, in *quickstartv1.ChargeCardRequest, next *ordertasks.ChargeCardNext) error {
	info, _ := backstage.InfoFrom(ctx)
	if err := s.ledger.started(ctx, info.ID, "charge", in.GetOrderId(), info.Attempt); err != nil {
		return err
	}
	switch account := in.GetAccount(); {
	case strings.HasPrefix(account, "unknown"):
		return backstage.Permanent(fmt.Errorf("no account %q", account))
	case strings.HasPrefix(account, "flaky") && info.Attempt < 3:
		return errors.New("connection reset by the bank")
	case strings.HasPrefix(account, "down"):
		return errors.New("503 from the bank")
	}
	if _, err := s.ledger.once(ctx, info.ID, "charge", in.GetOrderId()); err != nil {
		return err
	}
	if in.GetOrderId() == s.dieAfter {
		return killSelf() // the money is taken, and nobody but the ledger knows
	}
	next.SendReceipt(&quickstartv1.SendReceiptRequest{OrderId: in.GetOrderId()})
	return nil
}

// SendReceipt sends the receipt.
func (s *shop) SendReceipt(ctx context.Context, in *quickstartv1.SendReceiptRequest) error {
	info, _ := backstage.InfoFrom(ctx)
	if err := s.ledger.started(ctx, info.ID, "receipt", in.GetOrderId(), info.Attempt); err != nil {
		return err
	}
	_, err := s.ledger.once(ctx, info.ID, "receipt", in.GetOrderId())
	return err
}

// killSelf ends the process as a power cut would. It returns only if it cannot.
func killSelf() error {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		return err
	}
	select {} // the signal is on its way
}
