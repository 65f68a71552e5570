package providertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// marks keeps something about deliveries.
type marks struct{ m sync.Map }

func (m *marks) set(d *hookedDelivery)      { m.m.Store(d, true) }
func (m *marks) has(d *hookedDelivery) bool { _, ok := m.m.Load(d); return ok }

func settleMutants() []mutant {
	return []mutant{
		{
			fails: "settle/ack ends", says: "it was acknowledged",
			make: alone(func(_ *provider.Provider, h *hooks) { // an ack is sent nowhere
				h.ack = func(d *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
					if o := d.sub.opts; o.Lease == time.Second && o.MaxUnsettled == 5 {
						return nil
					}
					return call(ctx, next)
				}
			}),
		}, {
			fails: "settle/once", says: "want ErrSettled",
			make: alone(func(_ *provider.Provider, h *hooks) { // Ack is idempotent
				var done marks
				h.ack = func(d *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
					err := call(ctx, next)
					if done.has(d) && errors.Is(err, provider.ErrSettled) {
						return nil
					}
					if err == nil {
						done.set(d)
					}
					return err
				}
			}),
		}, {
			fails: "settle/kind is fixed", says: "Release after Ack",
			make: alone(func(_ *provider.Provider, h *hooks) { // what is done may be released
				var done marks
				h.ack = func(d *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
					done.set(d)
					return call(ctx, next)
				}
				h.release = func(d *hookedDelivery, ctx context.Context, call func(context.Context) error) error {
					if err := call(ctx); !done.has(d) || !errors.Is(err, provider.ErrSettled) {
						return err
					}
					return nil
				}
			}),
		}, {
			fails: "settle/at once from all sides", says: "winners",
			make: alone(func(_ *provider.Provider, h *hooks) { // both kinds are told that they won
				h.ack = func(d *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
					err := call(ctx, next)
					if len(next) == 0 || !errors.Is(err, provider.ErrSettled) {
						return err
					}
					return nil
				}
				h.deadLetter = func(d *hookedDelivery, ctx context.Context, f provider.Failure, call deadCall) error {
					if err := call(ctx, f); d.sub.opts.MaxUnsettled != 80 || !errors.Is(err, provider.ErrSettled) {
						return err
					}
					return nil
				}
			}),
		}, {
			fails: "settle/ended context", says: "called again until",
			make: alone(func(_ *provider.Provider, h *hooks) { // a call that was cut off counts as made
				var cut marks
				h.ack = func(d *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
					if ctx.Err() != nil {
						cut.set(d)
						return ctx.Err()
					}
					if cut.has(d) {
						return provider.ErrSettled
					}
					return call(ctx, next)
				}
			}),
		}, {
			fails: "settle/next", says: "of 1 deliveries came",
			make: alone(func(_ *provider.Provider, h *hooks) { // the last next job is lost
				h.ack = func(_ *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
					if len(next) == 4 {
						next = next[:3]
					}
					return call(ctx, next)
				}
			}),
		}, {
			fails: "settle/next with a delay", says: "DelayFacts.Finest",
			make: alone(func(_ *provider.Provider, h *hooks) { // next jobs are never held
				h.ack = func(_ *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
					return call(ctx, with(next, func(_ int, j *provider.Job) { j.Delay = 0 }))
				}
			}),
		}, {
			fails: "settle/retry counts a failure", says: "the last run",
			make: alone(func(_ *provider.Provider, h *hooks) { // the third failure is not written down
				h.retry = func(_ *hookedDelivery, ctx context.Context, again provider.Again, call retryCall) error {
					if again.Failure.Attempt == 3 {
						again.Failure = provider.Failure{}
					}
					return call(ctx, again)
				}
			}),
		}, {
			fails: "settle/snooze and park count as nothing", says: "two snoozes and a park",
			make: alone(func(_ *provider.Provider, h *hooks) { // a park is a failure
				h.retry = func(_ *hookedDelivery, ctx context.Context, again provider.Again, call retryCall) error {
					if again.Why == provider.ParkedAgain {
						again.Why = provider.FailedAgain
					}
					return call(ctx, again)
				}
			}),
		}, {
			fails: "settle/retry waits", says: "want 2s",
			make: alone(func(_ *provider.Provider, h *hooks) { // half of the time will do
				h.retry = func(_ *hookedDelivery, ctx context.Context, again provider.Again, call retryCall) error {
					if again.Why == provider.SnoozedAgain && again.After == 2*time.Second {
						again.After /= 2
					}
					return call(ctx, again)
				}
			}),
		}, {
			fails: "settle/retry starves nobody", says: "others waited",
			make: alone(func(_ *provider.Provider, h *hooks) { // a job that is retried goes first
				var first atomic.Pointer[hookedDelivery]
				h.retry = func(d *hookedDelivery, ctx context.Context, again provider.Again, call retryCall) error {
					if d.Job().Task == "providertest.v1.Tasks.Greedy" {
						first.Store(d)
						return nil
					}
					return call(ctx, again)
				}
				h.receive = func(_ *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					if d := first.Swap(nil); d != nil {
						return []provider.Delivery{d}, nil
					}
					return call(ctx, lanes, most)
				}
			}),
		}, {
			fails: "settle/retry keeps fields", says: "after two rewrites",
			make: alone(func(_ *provider.Provider, h *hooks) { // a snooze forgets the headers
				h.retry = func(d *hookedDelivery, ctx context.Context, again provider.Again, call retryCall) error {
					if again.Why != provider.SnoozedAgain || len(d.Job().Headers) == 0 {
						return call(ctx, again)
					}
					j := d.Job().After(again)
					j.Headers = nil
					return d.Delivery.Ack(ctx, []provider.Job{j})
				}
			}),
		}, {
			fails: "settle/recorded start", says: "want it known",
			make: alone(func(_ *provider.Provider, h *hooks) { // it is a park
				h.facts = func(f provider.JobFacts) provider.JobFacts {
					f.ExactCrashes = false
					return f
				}
				h.retry = func(_ *hookedDelivery, ctx context.Context, again provider.Again, call retryCall) error {
					if again.Why == provider.StartedAgain {
						again.Why = provider.ParkedAgain
					}
					return call(ctx, again)
				}
			}),
		}, {
			fails: "settle/release counts as nothing", says: "a released job",
			make: alone(func(_ *provider.Provider, h *hooks) { // it counts as a failure
				h.release = func(d *hookedDelivery, ctx context.Context, call func(context.Context) error) error {
					if len(d.Job().Headers) == 0 {
						return call(ctx)
					}
					return d.Delivery.Retry(ctx, provider.Again{Why: provider.FailedAgain, Failure: failure(2)})
				}
			}),
		}, {
			fails: "settle/unsettled", says: "deliveries came",
			make: alone(func(_ *provider.Provider, h *hooks) { // closing acknowledges what is open
				var mu sync.Mutex
				open := make(map[*hookedSub][]provider.Delivery)
				h.receive = func(s *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					ds, err := call(ctx, lanes, most)
					mu.Lock()
					defer mu.Unlock()
					if s.opts.Lease == time.Second && s.opts.MaxUnsettled == 5 {
						open[s] = append(open[s], ds...)
					}
					return ds, err
				}
				h.closeSub = func(s *hookedSub, ctx context.Context, call func(context.Context) error) error {
					mu.Lock()
					defer mu.Unlock()
					for _, d := range open[s] {
						_ = d.Ack(ctx, nil)
					}
					return call(ctx)
				}
			}),
		}, {
			fails: "settle/many at once", says: "is delivered again",
			make: func() func(*provider.Provider, *hooks) { // a full flush drops some
				var c crowd
				var dropped atomic.Bool
				return func(_ *provider.Provider, h *hooks) {
					h.ack = func(_ *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
						if len(next) == 0 {
							return call(ctx, next)
						}
						n, leave := c.join()
						defer leave()
						if n > 90 && dropped.CompareAndSwap(false, true) {
							return nil
						}
						return call(ctx, next)
					}
				}
			},
		},
	}
}

// newest knows the newest delivery of each job.
type newest struct{ m sync.Map }

func (n *newest) note(ds []provider.Delivery) {
	for _, d := range ds {
		n.m.Store(d.Job().ID, d)
	}
}

func (n *newest) of(d *hookedDelivery) *hookedDelivery {
	found, ok := n.m.Load(d.Delivery.Job().ID)
	if !ok || found == provider.Delivery(d) {
		return nil
	}
	return found.(*hookedDelivery)
}

// staleAck makes a mutant whose late Ack ends the newer run.
func staleAck(fails string, sameWorker bool) mutant {
	return mutant{
		fails: fails, says: "newer run",
		make: func() func(*provider.Provider, *hooks) {
			var n newest
			return func(_ *provider.Provider, h *hooks) {
				h.receive = func(_ *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					ds, err := call(ctx, lanes, most)
					n.note(ds)
					return ds, err
				}
				h.ack = func(d *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
					err := call(ctx, next)
					if fresh := n.of(d); errors.Is(err, provider.ErrLeaseLost) && len(next) == 0 && fresh != nil && (fresh.sub == d.sub) == sameWorker {
						_ = fresh.Delivery.Ack(ctx, nil)
					}
					return err
				}
			}
		},
	}
}

// staleExtend makes a mutant that answers a stale heartbeat of n deliveries.
func staleExtend(fails string, n int) mutant {
	return mutant{
		fails: fails, says: "want ErrLeaseLost",
		make: alone(func(_ *provider.Provider, h *hooks) {
			h.extend = func(_ *hookedSub, ctx context.Context, ds []provider.Delivery, call extendCall) []error {
				errs := call(ctx, ds)
				for i, err := range errs {
					if len(ds) == n && errors.Is(err, provider.ErrLeaseLost) {
						errs[i] = nil
					}
				}
				return errs
			}
		}),
	}
}

func leaseMutants() []mutant {
	return []mutant{
		{
			fails: "lease/takeover", says: "taken over",
			make: alone(func(_ *provider.Provider, h *hooks) { // a crash is a failure, too
				h.job = func(_ *hookedDelivery, j *provider.Job) *provider.Job {
					c := *j
					if c.Counters.Crashes == 1 && len(c.Headers) > 0 {
						c.Counters.Failures++
					}
					return &c
				}
			}),
		}, {
			fails: "lease/takeover of many", says: "of 150 jobs",
			make: func() func(*provider.Provider, *hooks) { // it sees the first hundred
				var seen atomic.Int64
				return func(_ *provider.Provider, h *hooks) {
					h.receive = func(_ *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
						ds, err := call(ctx, lanes, most)
						kept := ds[:0]
						for _, d := range ds {
							if d.Job().Counters.Crashes == 0 || seen.Add(1) <= 100 {
								kept = append(kept, d)
							}
						}
						return kept, err
					}
				}
			},
		}, {
			fails: "lease/takeover ahead of the lanes", says: "the first lane was busy",
			make: alone(func(_ *provider.Provider, h *hooks) { // the first lane is always first
				h.receive = func(_ *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					if len(lanes) == 2 && most == 1 {
						short, cancel := context.WithTimeout(ctx, time.Millisecond)
						defer cancel()
						if ds, _ := call(short, lanes[:1], most); len(ds) > 0 {
							return ds, nil
						}
					}
					return call(ctx, lanes, most)
				}
			}),
		}, {
			fails: "lease/crashes add up", says: "after 1 crashes",
			make: alone(func(_ *provider.Provider, h *hooks) { // a rewrite forgets them
				h.retry = func(d *hookedDelivery, ctx context.Context, again provider.Again, call retryCall) error {
					if again.Why != provider.FailedAgain || d.Job().Counters.Crashes != 1 {
						return call(ctx, again)
					}
					j := d.Job().After(again)
					j.Counters.Crashes = 0
					return d.Delivery.Ack(ctx, []provider.Job{j})
				}
			}),
		}, {
			fails: "lease/heartbeat keeps", says: "a heartbeat kept it",
			make: alone(func(_ *provider.Provider, h *hooks) { // a heartbeat of several is lost
				h.extend = func(_ *hookedSub, ctx context.Context, ds []provider.Delivery, call extendCall) []error {
					if len(ds) == 3 {
						return make([]error, 3)
					}
					return call(ctx, ds)
				}
			}),
		}, {
			fails: "lease/of its own", says: "its lease is a long one",
			make: func() func(*provider.Provider, *hooks) { // others' leases are mine
				return func(_ *provider.Provider, h *hooks) {
					h.subscribe = func(ctx context.Context, opts provider.SubscribeOptions, call subscribeCall) (provider.Subscription, error) {
						if opts.Lease == longLease && opts.MaxUnsettled == 1 {
							opts.Lease = 2500 * time.Millisecond
						}
						return call(ctx, opts)
					}
				}
			},
		},
		staleAck("lease/stale settlement", false),
		staleAck("lease/stale settlement in one worker", true),
		staleExtend("lease/stale heartbeat", 1),
		staleExtend("lease/stale heartbeat in one worker", 2),
		{
			fails: "lease/heartbeat of settled jobs", says: "want nil or ErrSettled",
			make: alone(func(_ *provider.Provider, h *hooks) { // what is settled is lost
				h.extend = func(_ *hookedSub, ctx context.Context, ds []provider.Delivery, call extendCall) []error {
					errs := call(ctx, ds)
					for i, err := range errs {
						if errors.Is(err, provider.ErrSettled) {
							errs[i] = provider.ErrLeaseLost
						}
					}
					return errs
				}
			}),
		},
	}
}
