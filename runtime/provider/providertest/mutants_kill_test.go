package providertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// openMutant opens a file in a process of its own: "mutant|path".
func openMutant(address string) (*provider.Provider, error) {
	mutant, path, _ := strings.Cut(address, "|")
	p, err := openFile(path)
	if err != nil {
		return nil, err
	}
	h := &hooks{}
	switch mutant {
	case "acks what it receives":
		h.receive = ackAtOnce(func(*provider.Job) bool { return true })
	case "acks, then publishes":
		h.receive = ackAtOnce(func(j *provider.Job) bool { return j.Task == "providertest.Second" })
		h.publish = forgetful(func(opts provider.PublishOptions) bool { return opts.Accepted })
	case "publishes nothing":
		h.publish = forgetful(func(provider.PublishOptions) bool { return true })
	case "acks nothing":
		h.ack = func(*hookedDelivery, context.Context, []provider.Job, ackCall) error { return nil }
	case "retries nothing":
		h.retry = func(*hookedDelivery, context.Context, provider.Again, retryCall) error { return nil }
	case "buries nothing":
		h.deadLetter = func(d *hookedDelivery, ctx context.Context, _ provider.Failure, _ deadCall) error {
			return d.Delivery.Ack(ctx, nil)
		}
	case "no retries":
		h.facts = noRetries
	case "no retries, holds nothing":
		h.facts = noRetries
		h.receive = ackAtOnce(func(*provider.Job) bool { return true })
		lend := p.Lend
		p.Lend = func(scope string) (provider.Delays, provider.Claims) {
			d, c := lend(scope)
			return &brokenDelays{Delays: d, hold: func(_ context.Context, jobs []provider.Job) []provider.Stored { return storedAll(jobs) }}, c
		}
	case "claims for good":
		lend := p.Lend
		p.Lend = func(scope string) (provider.Delays, provider.Claims) {
			d, c := lend(scope)
			return d, &brokenClaims{Claims: c, claim: func(ctx context.Context, claims []provider.Claim) ([]provider.Holder, error) {
				for i := range claims {
					claims[i].Confirmed = true
				}
				return c.Claim(ctx, claims)
			}}
		}
	case "feels no loss":
		h.lost = func(*hookedDelivery, <-chan struct{}) <-chan struct{} { return nil }
		h.extend = func(_ *hookedSub, _ context.Context, ds []provider.Delivery, _ extendCall) []error {
			return make([]error, len(ds))
		}
	case "refuses nothing":
		h.ack = func(_ *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
			if err := call(ctx, next); !errors.Is(err, provider.ErrLeaseLost) {
				return err
			}
			return nil
		}
	}
	wrap(p, h)
	return p, nil
}

func noRetries(f provider.JobFacts) provider.JobFacts {
	f.Retries = provider.RetriesNone
	return f
}

// ackAtOnce acknowledges some jobs as they are received.
func ackAtOnce(which func(*provider.Job) bool) func(*hookedSub, context.Context, []string, int, receiveCall) ([]provider.Delivery, error) {
	return func(_ *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
		ds, err := call(ctx, lanes, most)
		for _, d := range ds {
			if which(d.Job()) {
				_ = d.Ack(context.WithoutCancel(ctx), nil)
			}
		}
		return ds, err
	}
}

// forgetful says that jobs are stored, and stores none.
func forgetful(which func(provider.PublishOptions) bool) func(context.Context, []provider.Job, provider.PublishOptions, publishCall) []provider.Stored {
	return func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
		if which(opts) {
			return storedAll(jobs)
		}
		return call(ctx, jobs, opts)
	}
}

// killMutant is what the processes open that a check kills.
type killMutant struct {
	fails, mutant, says string
	round               round
	patience            time.Duration
}

func killMutants() []killMutant {
	return []killMutant{
		{fails: "kill/received", mutant: "acks what it receives", says: "ends"},
		{fails: "kill/started", mutant: "acks what it receives", says: "ends"},
		{fails: "kill/effect", mutant: "acks what it receives", says: "ends"},
		{fails: "kill/before ack", mutant: "acks what it receives", says: "ends"},
		{fails: "kill/before retry", mutant: "acks what it receives", says: "ends"},
		{fails: "kill/before dead", mutant: "acks what it receives", says: "among the dead letters"},
		{fails: "kill/at random", mutant: "acks what it receives", says: "chains ended"},
		{fails: "kill/next", mutant: "acks, then publishes", says: "ends", round: lent},
		{fails: "kill/acknowledged", mutant: "acks nothing", says: "ran again"},
		{fails: "kill/retried", mutant: "retries nothing", says: "want 2"},
		{fails: "kill/dead-lettered", mutant: "buries nothing", says: "among the dead letters"},
		{fails: "kill/retry held", mutant: "no retries, holds nothing", says: "ends", round: lent},
		{fails: "kill/claimed", mutant: "claims for good", says: "which was never published", round: lent},
		{fails: "kill/published", mutant: "publishes nothing", says: "ends"},
		{fails: "kill/stopped in its handler", mutant: "feels no loss", says: "want true", patience: 90 * time.Second},
		{fails: "kill/stopped before its ack", mutant: "refuses nothing", says: "want lost"},
	}
}

// TestEveryKillFindsItsMutant runs each check that kills processes on a provider
// that loses what it says it keeps.
func TestEveryKillFindsItsMutant(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real leases")
	}
	t.Parallel()
	for _, m := range killMutants() {
		t.Run(m.fails, func(t *testing.T) {
			t.Parallel()
			h := inFile(t, m.mutant)
			h.Patience = max(m.patience, 20*time.Second)
			rec := record(t, named(t, m.fails)[0], m.round, h)
			if !rec.Failed() || !strings.Contains(rec.String(), m.says) {
				t.Errorf("it said:\n%s\nwant a failure with %q", rec, m.says)
			}
		})
	}
}

// TestEveryKillHasAMutant keeps the table whole.
func TestEveryKillHasAMutant(t *testing.T) {
	has := make(map[string]bool)
	for _, m := range killMutants() {
		has[m.fails] = true
	}
	for _, c := range killChecks() {
		if !has[c.name] {
			t.Errorf("no mutant fails %s", c.name)
		}
	}
}
