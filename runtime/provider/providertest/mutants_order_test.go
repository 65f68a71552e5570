package providertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// keyless hides the ordering key of some jobs from the store and shows it again
// when they are delivered.
func keyless(hide func(*provider.Job) bool) func() func(*provider.Provider, *hooks) {
	return func() func(*provider.Provider, *hooks) {
		var keys sync.Map
		return func(_ *provider.Provider, h *hooks) {
			h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
				return call(ctx, with(jobs, func(_ int, j *provider.Job) {
					if hide(j) {
						keys.Store(j.ID, j.OrderingKey)
						j.OrderingKey = ""
					}
				}), opts)
			}
			h.job = func(_ *hookedDelivery, j *provider.Job) *provider.Job {
				key, hidden := keys.Load(j.ID)
				if !hidden {
					return j
				}
				c := *j
				c.OrderingKey = key.(string)
				return &c
			}
		}
	}
}

// atTheEnd ends a run and stores its job anew.
func atTheEnd(d *hookedDelivery, ctx context.Context, j provider.Job) error {
	return d.Delivery.Ack(ctx, []provider.Job{j})
}

func orderMutants() []mutant {
	return []mutant{
		{
			fails: "order/one at a time", says: "of the same key was running",
			make: keyless(func(j *provider.Job) bool { return j.OrderingKey == "key-3" }),
		}, {
			fails: "order/of one call", says: "of the key is",
			make: alone(func(_ *provider.Provider, h *hooks) { // a batch is a set
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					if len(jobs) != 6 || jobs[0].OrderingKey == "" {
						return call(ctx, jobs, opts)
					}
					jobs = slices.Clone(jobs)
					slices.Reverse(jobs)
					stored := call(ctx, jobs, opts)
					slices.Reverse(stored)
					return stored
				}
			}),
		}, {
			fails: "order/keys are apart", says: "want the first of the key",
			make: keyless(func(j *provider.Job) bool { return j.Task == "providertest.v1.Tasks.Another" }),
		}, {
			fails: "order/retry keeps its place", says: "while the first of its key waits",
			make: alone(func(_ *provider.Provider, h *hooks) { // a retry goes to the end
				h.retry = func(d *hookedDelivery, ctx context.Context, again provider.Again, call retryCall) error {
					if d.Job().OrderingKey == "" {
						return call(ctx, again)
					}
					return atTheEnd(d, ctx, d.Job().After(again))
				}
			}),
		}, {
			fails: "order/release keeps its place", says: "of the key is",
			make: alone(func(_ *provider.Provider, h *hooks) {
				h.release = func(d *hookedDelivery, ctx context.Context, call func(context.Context) error) error {
					if d.Job().OrderingKey == "" {
						return call(ctx)
					}
					return atTheEnd(d, ctx, *d.Job())
				}
			}),
		}, {
			fails: "order/dead frees the key", says: "frees its ordering key",
			make: alone(func(_ *provider.Provider, h *hooks) { // a dead job keeps its key
				h.deadLetter = func(d *hookedDelivery, ctx context.Context, f provider.Failure, call deadCall) error {
					if d.Job().OrderingKey != "" {
						return nil
					}
					return call(ctx, f)
				}
			}),
		}, {
			fails: "order/crash keeps its place", says: "of the key is",
			make: alone(func(_ *provider.Provider, h *hooks) {
				h.receive = func(_ *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					ds, err := call(ctx, lanes, most)
					kept := ds[:0]
					for _, d := range ds {
						if j := *d.Job(); j.OrderingKey != "" && j.Counters.Crashes > 0 {
							j.Counters.Crashes = 0
							_ = atTheEnd(d.(*hookedDelivery), context.WithoutCancel(ctx), j)
							continue
						}
						kept = append(kept, d)
					}
					return kept, err
				}
			}),
		}, {
			fails: "order/next jobs join at the end", says: "of the key is",
			make: alone(func(_ *provider.Provider, h *hooks) { // they are stored in any order
				h.ack = func(_ *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
					next = slices.Clone(next)
					if len(next) == 2 && next[0].OrderingKey != "" {
						slices.Reverse(next)
					}
					return call(ctx, next)
				}
			}),
		}, {
			fails: "order/delayed enters when due", says: "of the key is",
			make: alone(func(p *provider.Provider, _ *hooks) { // it takes its place when it is held
				d := p.Delays
				p.Delays = &brokenDelays{Delays: d, hold: func(ctx context.Context, jobs []provider.Job) []provider.Stored {
					return d.Hold(ctx, with(jobs, func(_ int, j *provider.Job) {
						if j.OrderingKey != "" {
							j.Delay = 0
						}
					}))
				}}
			}),
		}, {
			fails: "order/refused", says: "want refused",
			make: alone(func(_ *provider.Provider, h *hooks) { // it takes what it cannot do
				h.facts = func(f provider.JobFacts) provider.JobFacts {
					f.Ordered = false
					return f
				}
			}),
		},
	}
}

func dedupeMutants() []mutant {
	// stripped publishes some jobs without their claim.
	stripped := func(strip func(i int, jobs []provider.Job) bool) func() func(*provider.Provider, *hooks) {
		return alone(func(_ *provider.Provider, h *hooks) {
			h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
				return call(ctx, with(jobs, func(i int, j *provider.Job) {
					if strip(i, jobs) {
						j.Dedupe = provider.Dedupe{}
					}
				}), opts)
			}
		})
	}
	return []mutant{
		{
			fails: "dedupe/window", says: "one of another queue",
			make: stripped(func(i int, jobs []provider.Job) bool {
				return jobs[i].Queue == other && jobs[i].Dedupe.For == time.Hour
			}),
		}, {
			fails: "dedupe/window ends", says: "a claim for 2s held for",
			make: alone(func(_ *provider.Provider, h *hooks) {
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					return call(ctx, with(jobs, func(_ int, j *provider.Job) {
						if j.Dedupe.For == 2*time.Second {
							j.Dedupe.For /= 2
						}
					}), opts)
				}
			}),
		}, {
			fails: "dedupe/own id", also: []string{"dedupe/refused again"}, says: "want stored",
			make: func() func(*provider.Provider, *hooks) {
				var seen sync.Map
				return func(_ *provider.Provider, h *hooks) {
					h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
						if len(jobs) == 1 && jobs[0].Dedupe.Key != "" {
							if _, again := seen.LoadOrStore(jobs[0].ID, true); again {
								return []provider.Stored{{ID: jobs[0].ID, Outcome: provider.OutcomeDuplicate, Holder: jobs[0].ID}}
							}
						}
						return call(ctx, jobs, opts)
					}
				}
			},
		}, {
			fails: "dedupe/in one call", says: "in the same call",
			make: stripped(func(i int, jobs []provider.Job) bool { return len(jobs) == 4 && i == 1 }),
		}, {
			fails: "dedupe/many at once", says: "were stored; want one",
			make: func() func(*provider.Provider, *hooks) { // it looks before it takes
				var c crowd
				return func(_ *provider.Provider, h *hooks) {
					h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
						n, leave := c.join()
						defer leave()
						return call(ctx, with(jobs, func(_ int, j *provider.Job) {
							if n >= 40 {
								j.Dedupe = provider.Dedupe{}
							}
						}), opts)
					}
				}
			},
		}, {
			fails: "dedupe/until done", says: "waits for a retry",
			make: alone(func(p *provider.Provider, h *hooks) { // a retry frees the key
				h.retry = func(d *hookedDelivery, ctx context.Context, again provider.Again, call retryCall) error {
					err := call(ctx, again)
					if j := d.Job(); j.Dedupe.UntilDone && again.Why == provider.FailedAgain {
						_ = p.Claims.Release(ctx, j.Dedupe.Key, j.ID)
					}
					return err
				}
			}),
		}, {
			fails: "dedupe/until done outlives a crash", says: "after a crash",
			make: alone(func(p *provider.Provider, h *hooks) {
				h.receive = func(_ *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					ds, err := call(ctx, lanes, most)
					for _, d := range ds {
						if j := d.Job(); j.Dedupe.UntilDone && j.Counters.Crashes > 0 {
							_ = p.Claims.Release(ctx, j.Dedupe.Key, j.ID)
						}
					}
					return ds, err
				}
			}),
		}, {
			fails: "dedupe/dead frees", says: "want stored",
			make: alone(func(p *provider.Provider, h *hooks) { // a window outlives its job's death
				h.deadLetter = func(d *hookedDelivery, ctx context.Context, f provider.Failure, call deadCall) error {
					err := call(ctx, f)
					if j := d.Job(); j.Dedupe.For > 0 {
						_, _ = p.Claims.Claim(ctx, []provider.Claim{{Key: j.Dedupe.Key, Owner: j.ID, For: j.Dedupe.For, Confirmed: true}})
					}
					return err
				}
			}),
		}, {
			fails: "dedupe/next", says: "a key that a next job took",
			make: alone(func(_ *provider.Provider, h *hooks) { // next jobs take no claim
				h.ack = func(_ *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
					return call(ctx, with(next, func(_ int, j *provider.Job) {
						if j.Dedupe.Key == "order/2" {
							j.Dedupe = provider.Dedupe{}
						}
					}))
				}
			}),
		}, {
			fails: "dedupe/next of the same key", says: "took over",
			make: alone(func(_ *provider.Provider, h *hooks) { // it is merged into the job that made it
				h.ack = func(d *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
					return call(ctx, slices.DeleteFunc(slices.Clone(next), func(j provider.Job) bool {
						return j.Dedupe.Key != "" && j.Dedupe.Key == d.Job().Dedupe.Key
					}))
				}
			}),
		}, {
			fails: "dedupe/held", also: []string{"delays/something around them"}, says: "a key of a held job",
			make: stripped(func(i int, jobs []provider.Job) bool { return jobs[i].Delay > 0 && len(jobs) == 1 }),
		}, {
			fails: "dedupe/cancel frees", says: "a job that was cancelled",
			make: alone(func(p *provider.Provider, _ *hooks) { // the claim outlives its job
				d := p.Delays
				p.Delays = &brokenDelays{Delays: d, cancel: func(ctx context.Context, id string) ([]provider.Job, error) {
					cancelled, err := d.Cancel(ctx, id)
					for _, j := range cancelled {
						if j.Dedupe.Key == "order/4" {
							_, _ = p.Claims.Claim(ctx, []provider.Claim{{Key: j.Dedupe.Key, Owner: j.ID, For: time.Hour, Confirmed: true}})
						}
					}
					return cancelled, err
				}}
			}),
		}, {
			fails: "dedupe/refused again", says: "another job with the key",
			make: alone(func(p *provider.Provider, h *hooks) { // what is refused gives its claim back
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					stored := call(ctx, jobs, opts)
					for i, s := range stored {
						if s.Outcome == provider.OutcomeRefused && jobs[i].Dedupe.Key != "" {
							_ = p.Claims.Release(context.WithoutCancel(ctx), jobs[i].Dedupe.Key, s.ID)
						}
					}
					return stored
				}
			}),
		}, {
			fails: "dedupe/refused takes none", says: "want stored",
			make: alone(func(p *provider.Provider, h *hooks) {
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					stored := call(ctx, jobs, opts)
					for i, s := range stored {
						if d := jobs[i].Dedupe; d.Key != "" && errors.Is(s.Err, provider.ErrQueueFull) {
							_, _ = p.Claims.Claim(context.WithoutCancel(ctx), []provider.Claim{{Key: d.Key, Owner: s.ID, For: time.Hour, Confirmed: true}})
						}
					}
					return stored
				}
			}),
		}, {
			fails: "dedupe/replay", says: "want it to stay",
			make: alone(func(p *provider.Provider, _ *hooks) { // a duplicate is thrown away
				dead := p.Dead
				p.Dead = &brokenDead{DeadLetters: dead, replay: func(ctx context.Context, addresses ...string) ([]provider.Stored, error) {
					stored, err := dead.Replay(ctx, addresses...)
					for i, s := range stored {
						if s.Outcome == provider.OutcomeDuplicate {
							_, _ = dead.Discard(ctx, addresses[i])
						}
					}
					return stored, err
				}}
			}),
		}, {
			fails: "dedupe/claimed elsewhere", says: "want stored",
			make: alone(func(_ *provider.Provider, h *hooks) { // it claims again
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					opts.Claimed = false
					return call(ctx, jobs, opts)
				}
			}),
		},
	}
}
