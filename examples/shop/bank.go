package main

import (
	"context"
	"errors"
	"strings"
	"time"

	shopv1 "github.com/backstage-go/backstage/examples/shop/gen/shop/v1"
)

var (
	errRefused     = errors.New("the bank refuses the card")
	errUnavailable = errors.New("the bank is not available")
)

// bank stands for a payment service. As those do, it takes an idempotency key, and
// answers a key that it has seen as it did before; and it is slow, and sometimes
// not there.
type bank struct{ ledger *ledger }

// latency is how long it takes to answer.
const latency = 20 * time.Millisecond

// charge takes the money for an order. attempt is of no interest to a real bank:
// this one is back at the third.
func (b bank) charge(ctx context.Context, key string, attempt int, in *shopv1.ChargeCardRequest) error {
	select {
	case <-time.After(latency):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch card := in.GetCard(); {
	case strings.HasPrefix(card, "unlucky") && attempt < 3:
		return errUnavailable
	case strings.HasPrefix(card, "refused"):
		if err := b.ledger.once(ctx, key, refusal, in.GetOrderId()); err != nil {
			return err
		}
		return errRefused
	}
	return b.ledger.once(ctx, key, charge, in.GetOrderId())
}
