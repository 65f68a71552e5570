package providertest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// planVariable is the environment variable that makes a process of a test binary
// do a plan instead of the tests.
const planVariable = "BACKSTAGE_PROVIDERTEST_PLAN"

// Main is TestMain of a provider whose storage outlives its process: the suite
// starts the test binary again, as a worker that it kills. open opens a storage by
// Harness.Address or LenderAddress; it is only called in such a process.
func Main(m *testing.M, open func(address string) (*provider.Provider, error)) {
	if text := os.Getenv(planVariable); text != "" {
		var p plan
		err := json.Unmarshal([]byte(text), &p)
		if err == nil {
			err = p.do(open)
		}
		fmt.Fprintln(os.Stderr, "ended:", err)
		os.Exit(3) // such a process is killed, or goes on until its parent ends
	}
	manyAtOnce()
	os.Exit(m.Run())
}

// manyAtOnce lets more checks run at once than there are cores, because most of
// their time they wait. The command line has the last word.
func manyAtOnce() {
	if f := flag.Lookup("test.parallel"); f != nil {
		_ = f.Value.Set("16")
	}
}

// plan is what a process does.
type plan struct {
	// Address and Lender open the storages. Lender is empty in the first round.
	Address, Lender string
	// Enqueue is the chain that a client enqueues. Empty: the process is a worker.
	Enqueue string
	// Stop is where to stop. Empty: nowhere.
	Stop point
	// Chain is whose jobs to stop at.
	Chain string
	// Lane tells the queues of processes apart that run beside each other.
	Lane int
	// Ledger is the file in which runs are written down.
	Ledger string
	// Lease is the worker's.
	Lease time.Duration
	// Slots is how many handlers run at once.
	Slots int
}

// do carries a plan out, in a process of its own.
func (pl plan) do(open func(address string) (*provider.Provider, error)) error {
	p, err := open(pl.Address)
	if err != nil {
		return err
	}
	if pl.Lender != "" {
		l, err := open(pl.Lender)
		if err != nil {
			return err
		}
		p.Delays, p.Claims = l.Lend("providertest")
	}
	s := newStopper(pl.Stop, pl.Chain, os.Stdin, os.Stdout)
	s.around(p)
	c := chain{ledger: pl.Ledger, lane: pl.Lane, stop: s, p: p}
	if pl.Enqueue != "" {
		_, err := c.enqueue(context.Background(), pl.Enqueue, "")
		s.say("enqueued %v", err)
		select {}
	}
	w, err := c.worker(pl.Lease, pl.Slots)
	if err != nil {
		return err
	}
	s.say("runs")
	return w.Run(context.Background())
}

// point is a point in the life of a job at which a process is killed or stopped.
type point string

const (
	atClaimed      point = "claimed"       // the dedupe key is claimed, pending; nothing is published
	atPublished    point = "published"     // the job is stored; the client does not know yet
	atReceived     point = "received"      // Receive has the delivery; no handler runs
	atStarted      point = "started"       // the handler has begun
	atEffect       point = "effect"        // its side effect is done
	atNext         point = "next"          // its next job is published; it is not acknowledged
	atAck          point = "before ack"    // Ack is called and has done nothing
	atAcked        point = "acknowledged"  // Ack has returned
	atRetry        point = "before retry"  // Retry is called and has done nothing
	atRetried      point = "retried"       // Retry has returned
	atHeld         point = "retry held"    // the retry is held in a lent store; the source is not settled
	atDeadLetter   point = "before dead"   // DeadLetter is called and has done nothing
	atDeadLettered point = "dead-lettered" // DeadLetter has returned
)

// stopper stops a process at a point: it says so, and goes on when it is told to.
type stopper struct {
	stop  point
	chain string // whose jobs it stops at
	tell  io.Writer
	goOn  chan struct{}
	gate  *gate

	mu   sync.Mutex
	once bool
}

func newStopper(stop point, chain string, told io.Reader, tell io.Writer) *stopper {
	s := &stopper{stop: stop, chain: chain, tell: tell, goOn: make(chan struct{}), gate: newGate()}
	go s.listen(told)
	return s
}

// listen waits for the word to go on, and ends the process with its parent.
func (s *stopper) listen(told io.Reader) {
	lines := bufio.NewScanner(told)
	if lines.Scan() {
		close(s.goOn)
	}
	for lines.Scan() {
	}
	os.Exit(3)
}

// say tells the parent.
func (s *stopper) say(format string, args ...any) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.tell, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "))
}

// at stops here, the first time, if this is the point and a job of the chain is
// concerned. It reports whether it did.
func (s *stopper) at(here point, payload []byte) bool {
	if s == nil || !s.stops(here, payload) {
		return false
	}
	s.mu.Lock()
	first := !s.once
	s.once = true
	s.mu.Unlock()
	if first {
		s.say("at %s", here)
		<-s.goOn
	}
	return first
}

// stops reports whether this is the point, and a job of the chain is concerned.
func (s *stopper) stops(here point, payload []byte) bool {
	return s.stop == here && bytes.HasSuffix(payload, []byte(s.chain))
}

// around puts the points that are not in handlers around a provider's calls.
func (s *stopper) around(p *provider.Provider) {
	lentClaims := p.Claims != nil && p.Claims.Facts().Lent
	wrap(p, &hooks{
		publish: func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
			if len(jobs) == 0 {
				return call(ctx, jobs, opts)
			}
			first := jobs[0]
			s.at(atClaimed, first.Payload)
			stored := call(ctx, jobs, opts)
			if lentClaims && opts.Accepted && first.Parent != "" {
				s.at(atNext, first.Payload)
			}
			s.at(atPublished, first.Payload)
			return stored
		},
		receive: func(_ *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
			ds, err := s.gate.receive(ctx, func(ctx context.Context) ([]provider.Delivery, error) { return call(ctx, lanes, most) })
			for _, d := range ds {
				s.at(atReceived, d.Job().Payload)
			}
			return ds, err
		},
		ack: func(d *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
			payload := d.Job().Payload
			if s.stop == atNext && !lentClaims && len(next) > 0 {
				// What a provider does inside that publishes first.
				p.Jobs.Publish(ctx, next, provider.PublishOptions{Accepted: true})
				s.at(atNext, payload)
			}
			if s.at(atAck, payload) {
				// The call goes on, however late it is.
				late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute/2)
				defer cancel()
				ctx = late
			}
			err := call(ctx, next)
			s.say("ack %s", inAWord(err))
			s.at(atAcked, payload)
			return err
		},
		retry: func(d *hookedDelivery, ctx context.Context, again provider.Again, call retryCall) error {
			s.at(atRetry, d.Job().Payload)
			if s.stops(atRetried, d.Job().Payload) {
				s.gate.shut()
			}
			err := call(ctx, again)
			s.at(atRetried, d.Job().Payload)
			return err
		},
		deadLetter: func(d *hookedDelivery, ctx context.Context, f provider.Failure, call deadCall) error {
			s.at(atDeadLetter, d.Job().Payload)
			err := call(ctx, f)
			s.at(atDeadLettered, d.Job().Payload)
			return err
		},
	})
	if p.Delays != nil && p.Delays.Facts().Lent {
		p.Delays = &stoppingDelays{p.Delays, s}
	}
}

// stoppingDelays stops after a job was held for another run.
type stoppingDelays struct {
	provider.Delays
	s *stopper
}

func (d *stoppingDelays) Hold(ctx context.Context, jobs []provider.Job) []provider.Stored {
	stored := d.Delays.Hold(ctx, jobs)
	d.s.at(atHeld, jobs[0].Payload)
	return stored
}

// quietLog keeps a worker's warnings out of a test's output.
func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }
