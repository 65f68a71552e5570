package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// claiming makes a mutant that changes how keys are claimed.
func claiming(claim func(c provider.Claims, ctx context.Context, claims []provider.Claim) ([]provider.Holder, error)) func() func(*provider.Provider, *hooks) {
	return alone(func(p *provider.Provider, _ *hooks) {
		c := p.Claims
		p.Claims = &brokenClaims{Claims: c, claim: func(ctx context.Context, claims []provider.Claim) ([]provider.Holder, error) {
			return claim(c, ctx, claims)
		}}
	})
}

func claimsMutants() []mutant {
	// first releases a key before some claims of it.
	first := func(when func(provider.Claim) bool) func() func(*provider.Provider, *hooks) {
		return claiming(func(c provider.Claims, ctx context.Context, claims []provider.Claim) ([]provider.Holder, error) {
			for _, one := range claims {
				if when(one) {
					_ = c.Release(ctx, one.Key, one.Owner)
				}
			}
			return c.Claim(ctx, claims)
		})
	}
	return []mutant{
		{
			fails: "claims/one owner", says: "claim 1 of a call",
			make: claiming(func(c provider.Claims, ctx context.Context, claims []provider.Claim) ([]provider.Holder, error) {
				holders, err := c.Claim(ctx, claims) // answers in another order
				if len(holders) == 3 {
					holders[1], holders[2] = holders[2], holders[1]
				}
				return holders, err
			}),
		}, {
			fails: "claims/many at once", says: "was told",
			make: claiming(func(c provider.Claims, ctx context.Context, claims []provider.Claim) ([]provider.Holder, error) {
				holders, err := c.Claim(ctx, claims) // each believes that it won
				for i := range holders {
					if claims[i].Key == "shared" {
						holders[i] = provider.Holder{Owner: claims[i].Owner}
					}
				}
				return holders, err
			}),
		}, {
			fails: "claims/confirming", says: "claim 2",
			make: first(func(c provider.Claim) bool { return !c.Confirmed && c.For == time.Hour }),
		}, {
			fails: "claims/end", says: "a claim for 2s held for",
			make: claiming(func(c provider.Claims, ctx context.Context, claims []provider.Claim) ([]provider.Holder, error) {
				claims = slices.Clone(claims)
				for i := range claims {
					if claims[i].For == 2*time.Second {
						claims[i].For /= 2
					}
				}
				return c.Claim(ctx, claims)
			}),
		}, {
			fails: "claims/refresh", says: `key "shorter"`,
			make: first(func(c provider.Claim) bool { return c.Key == "shorter" && c.For == time.Second }),
		}, {
			fails: "claims/release", says: "is held by",
			make: alone(func(p *provider.Provider, _ *hooks) { // anybody's
				c := p.Claims
				p.Claims = &brokenClaims{Claims: c, release: func(ctx context.Context, key, owner string) error {
					if owner == "job-2" {
						owner = "job-1"
					}
					return c.Release(ctx, key, owner)
				}}
			}),
		},
	}
}

// holding makes a mutant that changes what is held.
func holding(change func(jobs []provider.Job, j *provider.Job)) func() func(*provider.Provider, *hooks) {
	return alone(func(p *provider.Provider, _ *hooks) {
		d := p.Delays
		p.Delays = &brokenDelays{Delays: d, hold: func(ctx context.Context, jobs []provider.Job) []provider.Stored {
			return d.Hold(ctx, with(jobs, func(_ int, j *provider.Job) { change(jobs, j) }))
		}}
	})
}

// promoting makes a mutant that changes how due jobs are published.
func promoting(publish func(d provider.Delays, ctx context.Context, due []provider.Job, publish provider.Publish) []provider.Stored) func() func(*provider.Provider, *hooks) {
	return alone(func(p *provider.Provider, _ *hooks) {
		d := p.Delays
		p.Delays = &brokenDelays{Delays: d, promote: func(ctx context.Context, to provider.Publish) error {
			if to == nil {
				return d.Promote(ctx, nil)
			}
			return d.Promote(ctx, func(ctx context.Context, due []provider.Job) []provider.Stored { return publish(d, ctx, due, to) })
		}}
	})
}

// inLentRound breaks what a provider was lent.
func (m mutant) inLentRound() mutant {
	mutate := m.make
	m.round, m.make = lent, nil
	m.harness = func(h Harness) Harness {
		change, lender := mutate(), h.Lender
		h.Lender = func() (*provider.Provider, error) {
			l, err := lender()
			if err != nil {
				return nil, err
			}
			lend := l.Lend
			l.Lend = func(scope string) (provider.Delays, provider.Claims) {
				borrower := &provider.Provider{}
				borrower.Delays, borrower.Claims = lend(scope)
				change(borrower, &hooks{})
				return borrower.Delays, borrower.Claims
			}
			return l, nil
		}
		return h
	}
	return m
}

func delaysMutants() []mutant {
	return []mutant{
		{
			fails: "delays/never early", says: "DelayFacts.Finest",
			make: holding(func(_ []provider.Job, j *provider.Job) {
				if j.Delay > 2100*time.Millisecond && j.Delay < 2900*time.Millisecond {
					j.Delay -= 100 * time.Millisecond
				}
			}),
		}, {
			fails: "delays/publish holds", says: "came before one without",
			make: alone(func(_ *provider.Provider, h *hooks) {
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					return call(ctx, with(jobs, func(_ int, j *provider.Job) {
						if len(jobs) == 2 {
							j.Delay = 0
						}
					}), opts)
				}
			}),
		}, {
			fails: "delays/something around them", says: "want stored",
			make: alone(func(p *provider.Provider, h *hooks) { // its own are those that it made
				d := p.Delays
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					if p.Delays != d && jobs[0].Delay > 0 {
						return []provider.Stored{{ID: jobs[0].ID, Outcome: provider.OutcomeRefused, Err: errors.New("no delays")}}
					}
					return call(ctx, jobs, opts)
				}
			}),
		}, {
			fails: "delays/whole record", says: "a job that was held",
			make: holding(func(_ []provider.Job, j *provider.Job) { j.Headers = nil }),
		}, {
			fails: "delays/replace", says: "replace",
			make: holding(func(_ []provider.Job, j *provider.Job) { // every hold is another job
				if string(j.Payload) == "the new one" && j.Counters.Failures == 0 {
					j.Counters.Parks++
				}
			}),
		}, {
			fails: "delays/cancel", says: "a job that was cancelled",
			make: func() func(*provider.Provider, *hooks) {
				var seen sync.Map
				return func(p *provider.Provider, _ *hooks) { // it finds what it has removed
					d := p.Delays
					p.Delays = &brokenDelays{Delays: d, cancel: func(ctx context.Context, id string) ([]provider.Job, error) {
						if cancelled, err := d.Cancel(ctx, id); len(cancelled) > 0 || err != nil {
							seen.Store(id, cancelled)
							return cancelled, err
						}
						before, _ := seen.Load(id)
						cancelled, _ := before.([]provider.Job)
						return cancelled, nil
					}}
				}
			},
		}, {
			fails: "delays/no cancel", says: "which Facts says it cannot",
			make: alone(func(p *provider.Provider, _ *hooks) {
				p.Delays = &brokenDelays{Delays: p.Delays, facts: func(f provider.DelayFacts) provider.DelayFacts {
					f.Addressable = false
					return f
				}}
			}),
		}, {
			fails: "delays/held", says: "Held of queue",
			make: alone(func(p *provider.Provider, _ *hooks) { // it cannot tell, and says zero
				d := p.Delays
				p.Delays = &brokenDelays{Delays: d, held: func(ctx context.Context, queue string) (provider.Measure[int64], error) {
					_, err := d.Held(ctx, queue)
					return provider.Measured[int64](0), err
				}}
			}),
		}, {
			fails: "delays/promote ends", says: "want nil when its context ends",
			make: alone(func(p *provider.Provider, _ *hooks) {
				d := p.Delays
				p.Delays = &brokenDelays{Delays: d, promote: func(ctx context.Context, publish provider.Publish) error {
					err := d.Promote(ctx, publish)
					if _, bounded := ctx.Deadline(); err == nil && bounded && errors.Is(ctx.Err(), context.DeadlineExceeded) {
						return ctx.Err()
					}
					return err
				}}
			}),
		},
		mutant{
			fails: "delays/forgotten when stored", says: "is promoted again", also: []string{"delays/promoters and keys"},
			make: promoting(func(_ provider.Delays, ctx context.Context, due []provider.Job, publish provider.Publish) []provider.Stored {
				stored := publish(ctx, due) // what is not known counts as stored
				for i := range stored {
					if stored[i].Outcome == provider.OutcomeUnknown && stored[i].Err != nil {
						stored[i].Outcome = provider.OutcomeStored
					}
				}
				return stored
			}),
		}.inLentRound(),
		mutant{
			fails: "delays/told when forgotten", says: "goes on after its answer",
			make: alone(func(p *provider.Provider, _ *hooks) {
				d := p.Delays
				p.Delays = &brokenDelays{Delays: d, promote: func(ctx context.Context, publish provider.Publish) error {
					return d.Promote(ctx, func(_ context.Context, due []provider.Job) []provider.Stored { return publish(ctx, due) })
				}}
			}),
		}.inLentRound(),
		mutant{
			fails: "delays/held anew meanwhile", says: "is gone",
			make: promoting(func(d provider.Delays, ctx context.Context, due []provider.Job, publish provider.Publish) []provider.Stored {
				stored := publish(ctx, due) // it forgets by id
				for _, j := range due {
					if j.Counters.Failures == 0 {
						_, _ = d.Cancel(ctx, j.ID)
					}
				}
				return stored
			}),
		}.inLentRound(),
		mutant{
			fails: "delays/five promoters", says: "1.05",
			make: promoting(func(_ provider.Delays, ctx context.Context, due []provider.Job, publish provider.Publish) []provider.Stored {
				if len(due) > 20 { // as if another had them as well
					publish(ctx, due)
				}
				return publish(ctx, due)
			}),
		}.inLentRound(),
		mutant{
			fails: "delays/promoters and keys", says: "at once",
			make: alone(func(p *provider.Provider, _ *hooks) { // the store does not see the keys
				d := p.Delays
				hide := func(_ int, j *provider.Job) {
					if strings.HasPrefix(j.OrderingKey, "promoted-") {
						j.OrderingKey, j.Actor = "", j.OrderingKey
					}
				}
				show := func(_ int, j *provider.Job) {
					if strings.HasPrefix(j.Actor, "promoted-") {
						j.OrderingKey, j.Actor = j.Actor, ""
					}
				}
				p.Delays = &brokenDelays{Delays: d,
					hold: func(ctx context.Context, jobs []provider.Job) []provider.Stored {
						return d.Hold(ctx, with(jobs, hide))
					},
					promote: func(ctx context.Context, publish provider.Publish) error {
						return d.Promote(ctx, func(ctx context.Context, due []provider.Job) []provider.Stored {
							return publish(ctx, with(due, show))
						})
					},
				}
			}),
		}.inLentRound(),
		mutant{
			fails: "delays/promoter dies", says: "while a promoter hung",
			make: func() func(*provider.Provider, *hooks) { // one at a time, for ever
				var busy atomic.Bool
				return func(p *provider.Provider, _ *hooks) {
					d := p.Delays
					p.Delays = &brokenDelays{Delays: d, promote: func(ctx context.Context, publish provider.Publish) error {
						if !busy.CompareAndSwap(false, true) {
							<-ctx.Done()
							return nil
						}
						defer busy.Store(false)
						return d.Promote(ctx, publish)
					}}
				}
			},
		}.inLentRound(),
		{
			fails: "delays/longest", says: "want refused",
			make: alone(func(p *provider.Provider, _ *hooks) {
				p.Delays = &brokenDelays{Delays: p.Delays, facts: func(f provider.DelayFacts) provider.DelayFacts {
					f.Longest = 24 * time.Hour
					return f
				}}
			}),
		}, {
			fails: "delays/many at once", says: "deliveries came",
			make: func() func(*provider.Provider, *hooks) {
				var c crowd
				return func(p *provider.Provider, _ *hooks) {
					d := p.Delays
					p.Delays = &brokenDelays{Delays: d, hold: func(ctx context.Context, jobs []provider.Job) []provider.Stored {
						n, leave := c.join()
						defer leave()
						if n >= 16 {
							return storedAll(jobs)
						}
						return d.Hold(ctx, jobs)
					}}
				}
			},
		},
	}
}

func lendMutants() []mutant {
	lending := func(lend func(lend func(string) (provider.Delays, provider.Claims), scope string) (provider.Delays, provider.Claims)) func() func(*provider.Provider, *hooks) {
		return alone(func(p *provider.Provider, _ *hooks) {
			whole := p.Lend
			p.Lend = func(scope string) (provider.Delays, provider.Claims) { return lend(whole, scope) }
		})
	}
	type lendFunc = func(string) (provider.Delays, provider.Claims)
	return []mutant{
		{
			fails: "lend/scopes of delays", says: "another's",
			make: lending(func(lend lendFunc, scope string) (provider.Delays, provider.Claims) {
				_, c := lend(scope)
				d, _ := lend("all")
				return d, c
			}),
		}, {
			fails: "lend/scopes of claims", says: "want it free",
			make: lending(func(lend lendFunc, scope string) (provider.Delays, provider.Claims) {
				d, _ := lend(scope)
				_, c := lend("all")
				return d, c
			}),
		}, {
			fails: "lend/is lent", says: "say Lent",
			make: lending(func(lend lendFunc, scope string) (provider.Delays, provider.Claims) {
				d, c := lend(scope)
				return d, &brokenClaims{Claims: c, facts: func(provider.ClaimFacts) provider.ClaimFacts { return provider.ClaimFacts{} }}
			}),
		}, {
			fails: "lend/scope is the place", says: "promotes the jobs of its scope",
			also: []string{"lend/scopes of delays"},
			make: func() func(*provider.Provider, *hooks) { // each process has scopes of its own
				opened := 0
				return func(p *provider.Provider, _ *hooks) {
					opened++
					n, lend := opened, p.Lend
					p.Lend = func(scope string) (provider.Delays, provider.Claims) { return lend(fmt.Sprint(scope, n)) }
				}
			},
		}, {
			fails: "lend/outlives the borrower", says: "closed",
			harness: func(h Harness) Harness { // one Close for both
				var lenders []*provider.Provider
				open, borrow := h.Open, h.Lender
				h.Open = func() (*provider.Provider, error) {
					p, err := open()
					lenders = append(lenders, p)
					return p, err
				}
				h.Lender = func() (*provider.Provider, error) {
					p, err := borrow()
					end := p.Close
					p.Close = func(ctx context.Context) error {
						for _, l := range lenders {
							_ = l.Close(ctx)
						}
						return end(ctx)
					}
					return p, err
				}
				return h
			},
		},
	}
}

func statsMutants() []mutant {
	return []mutant{
		{
			fails: "stats/queues", says: "in this order",
			make: alone(func(p *provider.Provider, _ *hooks) {
				s := p.Stats
				p.Stats = &brokenStats{Stats: s, queues: func(ctx context.Context) ([]string, error) {
					queues, err := s.Queues(ctx)
					slices.Reverse(queues)
					return queues, err
				}}
			}),
		}, {
			fails: "stats/numbers", says: "InFlight of queue work is 3", also: []string{"stats/depth of a key"},
			make: alone(func(p *provider.Provider, _ *hooks) { // what it cannot tell is zero
				s := p.Stats
				p.Stats = &brokenStats{Stats: s, queue: func(ctx context.Context, queue string) (provider.QueueStats, error) {
					q, err := s.Queue(ctx, queue)
					q.InFlight = provider.Measured[int64](0)
					return q, err
				}}
			}),
		}, {
			fails: "stats/depth of a key", says: "Depth of queue work is 2",
			make: alone(func(p *provider.Provider, h *hooks) { // who waits for another is not seen
				var keyed atomic.Bool
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					keyed.Store(len(jobs) > 0 && jobs[0].OrderingKey != "")
					return call(ctx, jobs, opts)
				}
				s := p.Stats
				p.Stats = &brokenStats{Stats: s, queue: func(ctx context.Context, queue string) (provider.QueueStats, error) {
					q, err := s.Queue(ctx, queue)
					if n, _ := q.InFlight.Get(); n > 0 && keyed.Load() {
						q.Depth = provider.Measured[int64](0)
					}
					return q, err
				}}
			}),
		}, {
			fails: "stats/no such queue", says: "want zero",
			make: alone(func(p *provider.Provider, _ *hooks) {
				s := p.Stats
				p.Stats = &brokenStats{Stats: s, queue: func(ctx context.Context, queue string) (provider.QueueStats, error) {
					q, err := s.Queue(ctx, queue)
					if queue == "never used" {
						q.OldestReady = provider.Measured(time.Second)
					}
					return q, err
				}}
			}),
		},
	}
}
