package main

import (
	"fmt"

	shopv1 "github.com/backstage-go/backstage/examples/shop/gen/shop/v1"
)

// order invents the order with a number: among a hundred there are two whose card
// is refused, and five whose bank is not there at first.
func (l *ledger) order(n int) *shopv1.ChargeCardRequest {
	card := "valid"
	switch {
	case n%50 == 7:
		card = "refused"
	case n%20 == 3:
		card = "unlucky"
	}
	return &shopv1.ChargeCardRequest{
		OrderId: fmt.Sprintf("%s-%06d", l.shop, n),
		Card:    fmt.Sprintf("%s-%d", card, n),
		Cents:   990 + int64(n%100),
	}
}

// presses is how often the customer of an order presses "buy": four among a hundred
// press twice.
func presses(n int) int {
	if n%25 == 11 {
		return 2
	}
	return 1
}
