package providertest

import (
	"context"
	"errors"
	"sync"

	"github.com/backstage-go/backstage/runtime/provider"
)

// burying makes a mutant of the store of dead letters.
func burying(change func(dead provider.DeadLetters) *brokenDead) func() func(*provider.Provider, *hooks) {
	return alone(func(p *provider.Provider, _ *hooks) {
		b := change(p.Dead)
		b.DeadLetters = p.Dead
		p.Dead = b
	})
}

func deadMutants() []mutant {
	return []mutant{
		{
			fails: "dead/letter", says: "a listed dead letter",
			make: alone(func(_ *provider.Provider, h *hooks) { // the stack is dropped
				h.deadLetter = func(_ *hookedDelivery, ctx context.Context, f provider.Failure, call deadCall) error {
					if f.Class == provider.ClassExhausted {
						f.Detail = ""
					}
					return call(ctx, f)
				}
			}),
		}, {
			fails: "dead/pages", says: "the pages list",
			make: burying(func(dead provider.DeadLetters) *brokenDead { // one is skipped between pages
				return &brokenDead{list: func(ctx context.Context, f provider.DeadFilter, page string) ([]provider.DeadLetter, string, error) {
					ls, next, err := dead.List(ctx, f, page)
					if page != "" && len(ls) > 0 {
						ls = ls[1:]
					}
					return ls, next, err
				}}
			}),
		}, {
			fails: "dead/filter", says: "Task1",
			make: burying(func(dead provider.DeadLetters) *brokenDead {
				return &brokenDead{list: func(ctx context.Context, f provider.DeadFilter, page string) ([]provider.DeadLetter, string, error) {
					f.Task = ""
					return dead.List(ctx, f, page)
				}}
			}),
		}, {
			fails: "dead/two of one job", says: "addresses of their own",
			make: burying(addressedByID),
		}, {
			fails: "dead/replay", says: "a replayed job",
			make: alone(func(_ *provider.Provider, h *hooks) { // the counters go on
				h.job = func(_ *hookedDelivery, j *provider.Job) *provider.Job {
					c := *j
					if n := len(c.Replays); n == 2 {
						c.Counters.Failures = c.Replays[1].Failures
					}
					return &c
				}
			}),
		}, {
			fails: "dead/replay again", says: "what was replayed",
			make: func() func(*provider.Provider, *hooks) { // a replay of nothing succeeds
				var replayed sync.Map
				return func(p *provider.Provider, _ *hooks) {
					dead := p.Dead
					p.Dead = &brokenDead{DeadLetters: dead, replay: func(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
						stored, err := dead.Replay(ctx, addresses...)
						for i, s := range stored {
							if _, was := replayed.Load(addresses[i]); was && errors.Is(s.Err, provider.ErrNotFound) {
								stored[i] = provider.Stored{Outcome: provider.OutcomeStored}
							}
							if s.Outcome == provider.OutcomeStored {
								replayed.Store(addresses[i], true)
							}
						}
						return stored, err
					}}
				}
			},
		}, {
			fails: "dead/replay cut off", says: "neither dead nor in its queue",
			make: burying(func(dead provider.DeadLetters) *brokenDead { // first it removes, then it stores
				return &brokenDead{replay: func(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
					if ctx.Err() != nil {
						_, _ = dead.Discard(context.WithoutCancel(ctx), addresses...)
					}
					return dead.Replay(ctx, addresses...)
				}}
			}),
		}, {
			fails: "dead/replay from two sides", says: "are left after a replay",
			make: func() func(*provider.Provider, *hooks) { // the second leaves a letter behind
				var c crowd
				var ghosts []provider.DeadLetter
				return func(p *provider.Provider, _ *hooks) {
					dead := p.Dead
					p.Dead = &brokenDead{DeadLetters: dead,
						replay: func(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
							l, err := dead.Get(ctx, addresses[0])
							n, leave := c.join()
							defer leave()
							if n == 2 && err == nil {
								ghosts = append(ghosts, l)
							}
							return dead.Replay(ctx, addresses...)
						},
						list: func(ctx context.Context, f provider.DeadFilter, page string) ([]provider.DeadLetter, string, error) {
							ls, next, err := dead.List(ctx, f, page)
							return append(ls, ghosts...), next, err
						},
					}
				}
			},
		}, {
			fails: "dead/discard", says: "Discard of what was discarded",
			make: burying(func(dead provider.DeadLetters) *brokenDead {
				return &brokenDead{discard: func(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
					if len(addresses) != 2 {
						return dead.Discard(ctx, addresses...)
					}
					return []provider.Stored{
						{Outcome: provider.OutcomeRefused, Err: provider.ErrNotFound}, {Outcome: provider.OutcomeStored},
					}, nil
				}}
			}),
		}, {
			fails: "dead/garbage", says: "the dead letter of bytes",
			make: burying(func(dead provider.DeadLetters) *brokenDead { // the bytes are dropped
				return &brokenDead{list: func(ctx context.Context, f provider.DeadFilter, page string) ([]provider.DeadLetter, string, error) {
					ls, next, err := dead.List(ctx, f, page)
					for i := range ls {
						ls[i].Raw = nil
					}
					return ls, next, err
				}}
			}),
		},
	}
}

// addressedByID is a store in which a letter is found by its job.
func addressedByID(dead provider.DeadLetters) *brokenDead {
	real := func(ctx context.Context, id string) string {
		ls, _, _ := dead.List(ctx, provider.DeadFilter{JobID: id}, "")
		if id == "" || len(ls) == 0 {
			return id
		}
		return ls[0].Address
	}
	all := func(ctx context.Context, ids []string) []string {
		addresses := make([]string, len(ids))
		for i, id := range ids {
			addresses[i] = real(ctx, id)
		}
		return addresses
	}
	named := func(l provider.DeadLetter) provider.DeadLetter {
		if l.Job.ID != "" {
			l.Address = l.Job.ID
		}
		return l
	}
	return &brokenDead{
		list: func(ctx context.Context, f provider.DeadFilter, page string) ([]provider.DeadLetter, string, error) {
			ls, next, err := dead.List(ctx, f, page)
			for i := range ls {
				ls[i] = named(ls[i])
			}
			return ls, next, err
		},
		get: func(ctx context.Context, id string) (provider.DeadLetter, error) {
			l, err := dead.Get(ctx, real(ctx, id))
			return named(l), err
		},
		replay: func(ctx context.Context, ids ...string) ([]provider.Stored, error) {
			return dead.Replay(ctx, all(ctx, ids)...)
		},
		discard: func(ctx context.Context, ids ...string) ([]provider.Stored, error) {
			return dead.Discard(ctx, all(ctx, ids)...)
		},
	}
}
