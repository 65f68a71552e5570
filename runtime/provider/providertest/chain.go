package providertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// chain is the work of the processes that are killed: First, then Second in
// another queue, then Third. Each run writes a line in the ledger, as its side
// effect. A chain whose name begins with "fail" fails once in First; one that
// begins with "dead" fails for good.
type chain struct {
	ledger string
	lane   int      // of its own queues, so that several chains do not meet
	stop   *stopper // nil where nothing stops
	p      *provider.Provider
}

func (c *chain) queue(name string) string { return fmt.Sprintf("%s-%d", name, c.lane) }

// name is the payload of the tasks: the name of a chain.
type name = wrapperspb.StringValue

func (c *chain) first() backstage.Task[*name] {
	t := backstage.Task[*name]{Name: "providertest.First", Queue: c.queue(work)}
	c.dedupe(&t)
	return t
}

func (c *chain) second() backstage.Task[*name] {
	return backstage.Task[*name]{Name: "providertest.Second", Queue: c.queue(other)}
}

func (c *chain) third() backstage.Task[*name] {
	t := backstage.Task[*name]{Name: "providertest.Third", Queue: c.queue(work)}
	c.dedupe(&t)
	return t
}

// dedupe makes a task deduplicated where the provider has Claims.
func (c *chain) dedupe(t *backstage.Task[*name]) {
	if c.p.Claims == nil {
		return
	}
	t.DedupeFor = time.Hour
	t.Dedupe = func(in *name) (string, error) {
		return backstage.JoinKey(backstage.KeyField("value", in.GetValue(), in.GetValue() != ""))
	}
}

// enqueue starts a chain, with an id of its own if id is empty.
func (c *chain) enqueue(ctx context.Context, chain, id string) (backstage.Receipt, error) {
	client, err := backstage.NewClient(c.p, backstage.ClientConfig{})
	if err != nil {
		return backstage.Receipt{}, err
	}
	var opts []backstage.EnqueueOption
	if id != "" {
		opts = append(opts, backstage.WithID(id))
	}
	return backstage.Enqueue(ctx, client, backstage.NewJob(c.first(), wrapperspb.String(chain), opts...))
}

// worker returns a worker that runs all three tasks.
func (c *chain) worker(lease time.Duration, slots int) (*backstage.Worker, error) {
	w, err := backstage.NewWorker(c.p, backstage.WorkerConfig{
		Name: "providertest", Lease: lease, Concurrency: slots, Logger: quietLog(),
		Queues: []backstage.Queue{{Name: c.queue(work)}, {Name: c.queue(other)}},
	})
	if err != nil {
		return nil, err
	}
	policy := backstage.Policy{MaxAttempts: 3, Backoff: backstage.Backoff{Base: 100 * time.Millisecond, Cap: 100 * time.Millisecond}}
	register := func(t backstage.Task[*name], handle func(context.Context, *name, *backstage.Next) error) {
		backstage.RegisterChain(w, backstage.Registration{Name: t.Name, Queue: t.Queue, Policy: policy}, handle)
	}
	register(c.first(), func(ctx context.Context, in *name, next *backstage.Next) error {
		if c.stop.at(atStarted, []byte(in.GetValue())) {
			<-ctx.Done()
			c.stop.say("cause %v", errors.Is(context.Cause(ctx), provider.ErrLeaseLost))
			return ctx.Err()
		}
		if err := c.run(ctx, in); err != nil {
			return err
		}
		c.stop.at(atEffect, []byte(in.GetValue()))
		backstage.Add(next, c.second(), "First.Second", in)
		return c.fails(ctx, in)
	})
	register(c.second(), func(ctx context.Context, in *name, next *backstage.Next) error {
		backstage.Add(next, c.third(), "Second.Third", in)
		return c.run(ctx, in)
	})
	register(c.third(), func(ctx context.Context, in *name, _ *backstage.Next) error { return c.run(ctx, in) })
	return w, nil
}

var errAsPlanned = errors.New("as planned")

// fails is how a run of First ends.
func (c *chain) fails(ctx context.Context, in *name) error {
	info, _ := backstage.InfoFrom(ctx)
	switch {
	case strings.HasPrefix(in.GetValue(), "dead"):
		return backstage.Permanent(errAsPlanned)
	case strings.HasPrefix(in.GetValue(), "fail") && info.Attempt == 1:
		return errAsPlanned
	}
	return nil
}

// run is the side effect: a line in the ledger, after a bit of work.
func (c *chain) run(ctx context.Context, in *name) error {
	time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
	info, _ := backstage.InfoFrom(ctx)
	task := strings.TrimPrefix(info.Task, "providertest.")
	f, err := os.OpenFile(c.ledger, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	// One write, so that lines of several processes do not mix.
	_, err = fmt.Fprintf(f, "%s %s %s %d %d %d\n", task, in.GetValue(), info.ID, info.Attempt, info.Crashes, os.Getpid())
	return err
}

// entry is a run in the ledger.
type entry struct {
	task, chain, id  string
	attempt, crashes int
	pid              int
}

// entries reads the ledger, oldest first.
func (c *chain) entries() ([]entry, error) {
	f, err := os.Open(c.ledger)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []entry
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e entry
		if _, err := fmt.Sscan(lines.Text(), &e.task, &e.chain, &e.id, &e.attempt, &e.crashes, &e.pid); err != nil {
			return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		all = append(all, e)
	}
	return all, lines.Err()
}

// inAWord says how a settlement ended.
func inAWord(err error) string {
	switch {
	case err == nil:
		return "nil"
	case errors.Is(err, provider.ErrLeaseLost):
		return "lost"
	case errors.Is(err, provider.ErrSettled):
		return "settled"
	}
	return "error: " + err.Error()
}
