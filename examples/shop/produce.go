package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/backstage-go/backstage/examples/shop/gen/shop/v1/ordertasks"
	backstage "github.com/backstage-go/backstage/runtime"
)

// produce is the producer: it enqueues orders, and notes in the ledger those that
// the broker has accepted.
func produce(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("shop produce", flag.ExitOnError)
	at := placeFlags(flags)
	orders := flags.Int("orders", 1000, "how `many` orders to enqueue")
	first := flags.Int("first", 0, "`number` of the first; 1 enqueues the same ones again (default: the one after the last)")
	rate := flags.Int("rate", 0, "most orders a `second` (default: as many as the broker takes)")
	if err := parse(flags, args); err != nil {
		return err
	}
	s, err := at.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	client, err := backstage.NewClient(s.provider, backstage.ClientConfig{})
	if err != nil {
		return err
	}
	if _, err := ordertasks.NewClient(client); err != nil {
		return err // the provider lacks what these tasks need
	}
	if *first == 0 {
		n, err := s.ledger.numbers(ctx)
		if err != nil {
			return err
		}
		*first = n.orders + 1
	}
	p := &producer{client: client, ledger: s.ledger, log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	err = p.all(ctx, *first, *orders, *rate)
	fmt.Println(p)
	return err
}

// producer enqueues orders, and counts.
type producer struct {
	client *backstage.Client
	ledger *ledger
	log    *slog.Logger

	accepted, duplicates int
	again                int // tries to enqueue a job after the first
	unknown              int // of them, those after an Unknown: a copy of the job may be stored already
}

// String says what became of the orders.
func (p *producer) String() string {
	return fmt.Sprintf(`"buy" was pressed %d times: %d orders accepted, %d were duplicates; tried again %d times, %d of them after an unknown outcome`,
		p.accepted+p.duplicates, p.accepted, p.duplicates, p.again, p.unknown)
}

// batch is how many orders are enqueued by one call.
const batch = 20

// all enqueues orders in batches, at a rate if one is given.
func (p *producer) all(ctx context.Context, first, orders, rate int) error {
	var pace <-chan time.Time
	if rate > 0 {
		ticker := time.NewTicker(max(batch*time.Second/time.Duration(rate), 1))
		defer ticker.Stop()
		pace = ticker.C
	}
	for n, end := first, first+orders; n < end; n += batch {
		var some []*press
		for number := n; number < min(n+batch, end); number++ {
			for range presses(number) {
				order := p.ledger.order(number)
				some = append(some, &press{orderID: order.GetOrderId(), job: ordertasks.ChargeCardJob(order)})
			}
		}
		if err := p.submit(ctx, some); err != nil {
			return err
		}
		if pace == nil {
			continue
		}
		select {
		case <-pace:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// submit enqueues orders and notes what was accepted. A producer that dies between
// the two and is started again enqueues these orders a second time; the broker then
// answers Duplicate, with the id of the job that it has.
func (p *producer) submit(ctx context.Context, presses []*press) error {
	if err := p.enqueue(ctx, presses); err != nil {
		return err
	}
	taken := make([]accepted, len(presses))
	for i, press := range presses {
		taken[i] = accepted{jobID: press.receipt.ID, orderID: press.orderID}
		if press.receipt.Duplicate {
			p.duplicates++
		} else {
			p.accepted++
		}
	}
	return p.ledger.accept(ctx, taken)
}
