package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	quickstartv1 "github.com/backstage-go/backstage/examples/quickstart/gen/quickstart/v1"
	"github.com/backstage-go/backstage/examples/quickstart/gen/quickstart/v1/ordertasks"
	"github.com/backstage-go/backstage/providers/embedded"
	"github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// batch is how many orders are enqueued by one call.
const batch = 500

// tally is what the closing table is made of.
type tally struct {
	malformed  []malformed
	orders     int    // lines that are orders
	duplicates int    // of them, submitted before
	victim     string // the order whose worker dies
	victimJob  string
	letters    []provider.DeadLetter
}

// demo runs all of it and prints the closing table.
func demo(ctx context.Context, source io.Reader, dir string, out io.Writer) (err error) {
	var t tally
	var orders []*quickstartv1.ChargeCardRequest
	if orders, t.malformed, err = readOrders(source); err != nil {
		return fmt.Errorf("read orders: %w", err)
	}
	for _, bad := range t.malformed {
		fmt.Fprintf(out, "line %d is no order: %v; going on\n", bad.line, bad.err)
	}
	p, err := embedded.Open(queueFile(dir), embedded.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close(context.WithoutCancel(ctx))) }()
	ledger, err := openLedger(ctx, ledgerFile(dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.close()) }()

	if err := t.enqueue(ctx, p, orders); err != nil {
		return err
	}
	fmt.Fprintf(out, "enqueued %d orders, %d of them submitted before\n", t.orders, t.duplicates)
	if t.victim == "" {
		fmt.Fprintln(out, "no order among them would be charged at once, so no worker is killed after a charge")
	}
	if err := t.workUntilQuiet(ctx, p, ledger, dir, out); err != nil {
		return err
	}
	if t.letters, err = deadLetters(ctx, p); err != nil {
		return err
	}
	return t.print(ctx, ledger, out)
}

// enqueue submits all orders, and chooses one in the middle for the worker to die
// after.
func (t *tally) enqueue(ctx context.Context, p *provider.Provider, orders []*quickstartv1.ChargeCardRequest) error {
	client, err := backstage.NewClient(p, backstage.ClientConfig{})
	if err != nil {
		return err
	}
	if _, err := ordertasks.NewClient(client); err != nil {
		return err // the provider lacks what these tasks need
	}
	t.orders = len(orders)
	for len(orders) > 0 {
		part := orders[:min(batch, len(orders))]
		orders = orders[len(part):]
		jobs := make([]backstage.Job, len(part))
		for i, order := range part {
			jobs[i] = ordertasks.ChargeCardJob(order)
		}
		receipts, err := client.Enqueue(ctx, jobs...)
		if err != nil {
			return err
		}
		for i, receipt := range receipts {
			if receipt.Duplicate {
				t.duplicates++
			} else if healthy(part[i]) && (t.victim == "" || len(orders) > t.orders/2) {
				t.victim, t.victimJob = part[i].GetOrderId(), receipt.ID
			}
		}
	}
	return nil
}

// workUntilQuiet runs the jobs in one worker process after the other, until there
// is nothing left to do.
func (t *tally) workUntilQuiet(ctx context.Context, p *provider.Provider, ledger *ledger, dir string, out io.Writer) error {
	first, err := startWorker(dir, t.victim)
	if err != nil {
		return err
	}
	show := newProgress(out, ledger, t.orders-t.duplicates)
	died, err := show.until(ctx, first, p)
	if err != nil || !died {
		return errors.Join(err, first.stop())
	}
	fmt.Fprintf(out, "worker %d died right after it charged %s, before it could say so\n", first.cmd.Process.Pid, t.victim)
	second, err := startWorker(dir, "")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "worker %d goes on; what the dead one held comes back within its lease of %v plus five seconds\n", second.cmd.Process.Pid, lease)
	if died, err = show.until(ctx, second, p); died {
		return errors.Join(err, errors.New("the second worker died too"))
	}
	return errors.Join(err, second.stop())
}

// progress is the line that shows how far it is.
type progress struct {
	out    io.Writer
	ledger *ledger
	orders int
	every  time.Duration
	last   time.Time
}

func newProgress(out io.Writer, ledger *ledger, orders int) *progress {
	return &progress{out: out, ledger: ledger, orders: orders, every: time.Second}
}

// until shows progress until there is nothing left to do or the worker has died.
func (s *progress) until(ctx context.Context, w *workerProcess, p *provider.Provider) (died bool, err error) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-w.done:
			w.done <- nil // for stop
			return true, nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-ticker.C:
		}
		left, err := unfinished(ctx, p)
		if err != nil {
			return false, err
		}
		if err := s.print(ctx, left); err != nil || left == 0 {
			return false, err
		}
	}
}

func (s *progress) print(ctx context.Context, left int64) error {
	if left > 0 && time.Since(s.last) < s.every {
		return nil
	}
	s.last = time.Now()
	charged, err := s.ledger.count(ctx, `select count(*) from effect where kind='charge'`)
	if err != nil {
		return err
	}
	sent, err := s.ledger.count(ctx, `select count(*) from effect where kind='receipt'`)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "  charged %d of %d, receipts %d, jobs left %d\n", charged, s.orders, sent, left)
	return nil
}

// unfinished counts the jobs that are ready, running or waiting for their time.
func unfinished(ctx context.Context, p *provider.Provider) (left int64, err error) {
	queues, err := p.Stats.Queues(ctx)
	if err != nil {
		return 0, err
	}
	for _, queue := range queues {
		stats, err := p.Stats.Queue(ctx, queue)
		if err != nil {
			return 0, err
		}
		for _, measure := range []provider.Measure[int64]{stats.Depth, stats.InFlight, stats.Held} {
			n, _ := measure.Get()
			left += n
		}
	}
	return left, nil
}

func deadLetters(ctx context.Context, p *provider.Provider) (all []provider.DeadLetter, err error) {
	for page := ""; ; {
		letters, next, err := p.Dead.List(ctx, provider.DeadFilter{}, page)
		if err != nil {
			return nil, err
		}
		if all = append(all, letters...); next == "" {
			return all, nil
		}
		page = next
	}
}
