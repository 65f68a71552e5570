package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"
)

// demo starts a producer and two workers, kills one of them when a third of the
// orders are charged, and prints the table when all is done. It goes on whatever
// else is killed meanwhile, the broker included.
func demo(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("shop demo", flag.ExitOnError)
	at := placeFlags(flags)
	orders := flags.Int("orders", 1000, "how `many` orders to enqueue")
	rate := flags.Int("rate", 200, "most orders a `second`; 0: as many as the broker takes")
	if err := parse(flags, args); err != nil {
		return err
	}
	s, err := at.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	before, err := s.ledger.numbers(ctx)
	if err != nil {
		return err
	}
	p := &play{shop: s, crew: &crew{place: at, ended: make(chan end)}, killAt: before.charged + *orders/3}
	if err := p.run(ctx, "-orders", strconv.Itoa(*orders), "-rate", strconv.Itoa(*rate)); err != nil {
		return fmt.Errorf("%w (what the processes said is in %s)", err, at.data)
	}
	fmt.Println()
	return s.report(ctx, os.Stdout)
}

const (
	// lease is short here, so that a dead worker's jobs do not wait long.
	lease = 3 * time.Second
	// mostDeaths is how many workers are replaced. Where more die, something is wrong.
	mostDeaths = 5
)

// play is one run of the demo.
type play struct {
	*shop
	crew *crew
	// victim is the worker that is killed when killAt orders are charged; nil from then
	// on.
	victim *os.Process
	killAt int

	producing bool
	deaths    int
	shown     time.Time
}

// run runs a producer and two workers until all orders are done, or one is missing.
func (p *play) run(ctx context.Context, produce ...string) (err error) {
	defer p.crew.wait.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if p.victim, err = p.hire(ctx, "worker-1"); err != nil {
		return err
	}
	if _, err := p.hire(ctx, "worker-2"); err != nil {
		return err
	}
	if _, err := p.crew.start(ctx, "producer", "produce", produce...); err != nil {
		return err
	}
	p.producing = true
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		done := false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case end := <-p.crew.ended:
			err = p.gone(ctx, end)
		case <-ticker.C:
			done, err = p.watch(ctx)
		}
		if done || err != nil {
			return err
		}
	}
}

func (p *play) hire(ctx context.Context, name string) (*os.Process, error) {
	process, err := p.crew.start(ctx, name, "worker", "-name", name, "-lease", lease.String())
	if err == nil {
		fmt.Printf("%s is process %d\n", name, process.Pid)
	}
	return process, err
}

// gone is called when a process has ended. A worker that died is replaced, as what
// supervises workers elsewhere does.
func (p *play) gone(ctx context.Context, end end) error {
	if end.name == "producer" {
		p.producing = false
		return end.err
	}
	if p.deaths++; p.deaths > mostDeaths {
		return fmt.Errorf("%s: %w", end.name, end.err)
	}
	fmt.Printf("%s died (%v); its jobs are taken over within %v\n", end.name, end.err, lease+5*time.Second)
	_, err := p.hire(ctx, end.name)
	return err
}

// watch shows how far it is, kills the victim when its time has come, and reports
// whether there is nothing left to wait for.
func (p *play) watch(ctx context.Context) (done bool, err error) {
	n, missing, err := p.look(ctx)
	if err != nil {
		if p.due() {
			fmt.Println("  the broker does not answer:", err)
		}
		return false, nil
	}
	done = !p.producing && (missing || n.done())
	if done || p.due() {
		fmt.Printf("  orders accepted %d, charged %d, refused %d; receipts %d, parcels %d\n", n.accepted, n.charged, n.refused, n.receipts, n.parcels)
	}
	if p.victim != nil && n.charged >= p.killAt {
		if err := p.victim.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return false, err
		}
		p.victim = nil
	}
	return done, nil
}

// due reports once a second that it is time to show something.
func (p *play) due() bool {
	if time.Since(p.shown) < time.Second {
		return false
	}
	p.shown = time.Now()
	return true
}
