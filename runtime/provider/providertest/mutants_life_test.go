package providertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func closeMutants() []mutant {
	return []mutant{
		{
			fails: "close/twice", says: "Provider.Close",
			make: alone(func(p *provider.Provider, _ *hooks) {
				end := p.Close
				var closed atomic.Bool
				p.Close = func(ctx context.Context) error {
					if closed.Swap(true) {
						return provider.ErrClosed
					}
					return end(ctx)
				}
			}),
		}, {
			fails: "close/calls after it", says: "Health after Close",
			make: alone(func(p *provider.Provider, _ *hooks) {
				p.Health = func(context.Context) error { return nil }
			}),
		}, {
			fails: "close/the others go on", says: "closed",
			make: func() func(*provider.Provider, *hooks) { // one's end is all subscriptions' end
				var mu sync.Mutex
				var all []provider.Subscription
				return func(p *provider.Provider, h *hooks) {
					lane := ""
					h.subscribe = func(ctx context.Context, opts provider.SubscribeOptions, call subscribeCall) (provider.Subscription, error) {
						s, err := call(ctx, opts)
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							lane = opts.Lanes[0].Queue
							all = append(all, s.(*hookedSub).Subscription)
						}
						return s, err
					}
					end := p.Close
					p.Close = func(ctx context.Context) error {
						mu.Lock()
						defer mu.Unlock()
						for _, s := range all {
							if lane == other && len(all) == 2 {
								_ = s.Close(ctx)
							}
						}
						return end(ctx)
					}
				}
			},
		}, {
			fails: "close/blocked calls", says: "goes on after Close",
			make: alone(func(_ *provider.Provider, h *hooks) { // it does not wake who waits
				var waiting atomic.Int64
				h.receive = func(_ *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					waiting.Add(1)
					defer waiting.Add(-1)
					return call(ctx, lanes, most)
				}
				h.closeSub = func(_ *hookedSub, ctx context.Context, call func(context.Context) error) error {
					if waiting.Load() > 0 {
						return nil
					}
					return call(ctx)
				}
			}),
		}, {
			fails: "close/settlements under way", says: "delivered again",
			make: alone(func(_ *provider.Provider, h *hooks) { // what comes too late is told that it is done
				h.ack = func(d *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
					err := call(ctx, next)
					if errors.Is(err, provider.ErrClosed) && d.sub.opts.Lease == 5*time.Second {
						return nil
					}
					return err
				}
			}),
		}, {
			fails: "close/publishes under way", says: "deliver",
			make: alone(func(_ *provider.Provider, h *hooks) { // so are jobs
				var subscribed atomic.Bool
				h.subscribe = func(ctx context.Context, opts provider.SubscribeOptions, call subscribeCall) (provider.Subscription, error) {
					subscribed.Store(true)
					return call(ctx, opts)
				}
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					stored := call(ctx, jobs, opts)
					if len(stored) == 1 && !subscribed.Load() && errors.Is(stored[0].Err, provider.ErrClosed) {
						return storedAll(jobs)
					}
					return stored
				}
			}),
		}, {
			fails: "close/no goroutine is left", says: "goroutines are left",
			make: alone(func(_ *provider.Provider, h *hooks) {
				h.subscribe = func(ctx context.Context, opts provider.SubscribeOptions, call subscribeCall) (provider.Subscription, error) {
					go time.Sleep(time.Hour)
					return call(ctx, opts)
				}
			}),
		}, {
			fails: "close/health", says: "Health with a subscription",
			make: alone(func(p *provider.Provider, h *hooks) { // it looks at an idle connection
				var subscribed atomic.Bool
				h.subscribe = func(ctx context.Context, opts provider.SubscribeOptions, call subscribeCall) (provider.Subscription, error) {
					subscribed.Store(true)
					return call(ctx, opts)
				}
				health := p.Health
				p.Health = func(ctx context.Context) error {
					if err := health(ctx); err != nil || !subscribed.Load() {
						return err
					}
					return errors.New("idle")
				}
			}),
		},
	}
}

// claimsFact makes a mutant that claims another fact than is true.
func claimsFact(change func(*provider.JobFacts)) func() func(*provider.Provider, *hooks) {
	return alone(func(_ *provider.Provider, h *hooks) {
		h.facts = func(f provider.JobFacts) provider.JobFacts {
			change(&f)
			return f
		}
	})
}

func factsMutants() []mutant {
	return []mutant{
		{
			fails: "facts/constant", says: "not always the same",
			make: alone(func(_ *provider.Provider, h *hooks) {
				var asked atomic.Int64
				h.facts = func(f provider.JobFacts) provider.JobFacts {
					f.Confirmed = asked.Add(1)%2 == 0
					return f
				}
			}),
		}, {
			fails: "facts/death", says: "its session goes on",
			make: claimsFact(func(f *provider.JobFacts) { f.Death = provider.Session }),
		}, {
			fails: "facts/exact crashes", says: "the only one that its dead worker had started",
			make: alone(func(_ *provider.Provider, h *hooks) { // one crash is all jobs' crash
				var crashed atomic.Bool
				h.receive = func(_ *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					ds, err := call(ctx, lanes, most)
					for _, d := range ds {
						if d.(*hookedDelivery).Delivery.Job().Counters.Crashes == 1 {
							crashed.Store(true)
						}
					}
					return ds, err
				}
				h.job = func(d *hookedDelivery, j *provider.Job) *provider.Job {
					c := *j
					if d.sub.opts.MaxUnsettled == 10 && crashed.Load() {
						c.Counters.Crashes = max(1, c.Counters.Crashes)
					}
					return &c
				}
			}),
		}, {
			fails: "facts/atomic handoff", says: "refused as a whole",
			make: alone(func(p *provider.Provider, h *hooks) { // it publishes first
				jobs := p.Jobs
				h.ack = func(_ *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
					if len(next) != 2 || next[0].Queue != other || next[1].Queue != other {
						return call(ctx, next)
					}
					jobs.Publish(ctx, next, provider.PublishOptions{Accepted: true})
					return call(ctx, nil)
				}
			}),
		}, {
			fails: "facts/retries", says: "Retry of",
			make: claimsFact(func(f *provider.JobFacts) { f.Retries = provider.RetriesAll }),
		}, {
			fails: "facts/slots", says: "of 4 deliveries came",
			make: alone(func(_ *provider.Provider, h *hooks) { // a lane's slots bind all the same
				var mu sync.Mutex
				taken := make(map[*hookedSub]bool)
				h.receive = func(s *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					if s.opts.MaxUnsettled != 4 || len(s.opts.Lanes) != 2 || s.opts.Lanes[0].Slots != 1 {
						return call(ctx, lanes, most)
					}
					mu.Lock()
					was := taken[s]
					taken[s] = true
					mu.Unlock()
					if was {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return call(ctx, lanes, 1)
				}
			}),
		},
		confirmedMutant(),
		carriedMutant(),
	}
}

// carriedMutant is a broker that forgets jobs when it crashes.
func carriedMutant() mutant {
	var forget func()
	return mutant{
		fails: "facts/carried", says: "deliveries came",
		harness: func(h Harness) Harness {
			h.Crash = func() error {
				forget()
				return nil
			}
			return h
		},
		make: alone(func(p *provider.Provider, _ *hooks) {
			jobs := p.Jobs
			forget = func() { drain(context.Background(), jobs, other) }
		}),
	}
}

// confirmedMutant is a broker that forgets settlements when it crashes.
func confirmedMutant() mutant {
	var crashed func()
	m := mutant{fails: "facts/confirmed", says: "before the broker crashed"}
	m.harness = func(h Harness) Harness {
		h.Crash = func() error {
			crashed()
			return nil
		}
		return h
	}
	m.make = func() func(*provider.Provider, *hooks) {
		var mu sync.Mutex
		var settled []provider.Job
		return func(p *provider.Provider, h *hooks) {
			jobs := p.Jobs
			h.ack = func(d *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
				mu.Lock()
				defer mu.Unlock()
				settled = append(settled, *d.Job())
				return call(ctx, next)
			}
			crashed = func() {
				mu.Lock()
				defer mu.Unlock()
				jobs.Publish(context.Background(), settled, provider.PublishOptions{Accepted: true})
			}
		}
	}
	return m
}

// cable lies between a provider and a broker that a test may cut. Memory has no
// broker; the cable behaves as the provider of one should.
type cable struct {
	mu       sync.Mutex
	restored chan struct{} // nil while all is well
	all      []*provider.Provider
}

var errCut = errors.New("the cable is cut")

func (c *cable) cut() (restore func(), err error) {
	c.mu.Lock()
	c.restored = make(chan struct{})
	c.mu.Unlock()
	c.emit(provider.Disconnected)
	return func() {
		c.mu.Lock()
		close(c.restored)
		c.restored = nil
		c.mu.Unlock()
		c.emit(provider.Reconnected)
	}, nil
}

func (c *cable) emit(k provider.Kind) {
	for _, p := range c.all {
		p.Events.Emit(provider.Event{Provider: p.Name, Kind: k})
	}
}

// through waits until the cable is whole, or ctx ends.
func (c *cable) through(ctx context.Context) error {
	c.mu.Lock()
	restored := c.restored
	c.mu.Unlock()
	if restored == nil {
		return nil
	}
	select {
	case <-restored:
		return c.through(ctx)
	case <-ctx.Done():
		return errors.Join(errCut, ctx.Err())
	}
}

func (c *cable) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.restored != nil
}

// wire puts the cable between.
func (c *cable) wire(p *provider.Provider) {
	c.all = append(c.all, p)
	wrap(p, &hooks{
		publish: func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
			if err := c.through(ctx); err != nil {
				stored := storedAll(jobs)
				for i := range stored {
					stored[i].Outcome, stored[i].Err = provider.OutcomeUnknown, err
				}
				return stored
			}
			return call(ctx, jobs, opts)
		},
		receive: func(_ *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
			if err := c.through(ctx); err != nil {
				return nil, err
			}
			return call(ctx, lanes, most)
		},
		ack: func(_ *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
			if err := c.through(ctx); err != nil {
				return err
			}
			return call(ctx, next)
		},
	})
	health := p.Health
	p.Health = func(ctx context.Context) error {
		if c.isCut() {
			return errCut
		}
		return health(ctx)
	}
}

// cabled is a harness with a cable.
func cabled(h Harness) (Harness, *cable) {
	c := &cable{}
	open := h.Open
	h.Open = func() (*provider.Provider, error) {
		p, err := open()
		if err == nil {
			c.wire(p)
		}
		return p, err
	}
	h.Outage = c.cut
	return h, c
}

func outageMutants() []mutant {
	// behind makes a mutant of a provider that is connected by a cable.
	behind := func(fails, says string, mutate func(c *cable, p *provider.Provider, h *hooks)) mutant {
		m := mutant{fails: fails, says: says}
		var c *cable
		m.harness = func(h Harness) Harness {
			h, c = cabled(h)
			return h
		}
		m.make = func() func(*provider.Provider, *hooks) {
			return func(p *provider.Provider, h *hooks) { mutate(c, p, h) }
		}
		return m
	}
	return []mutant{
		behind("outage/receive lives on", "Receive through an outage", func(c *cable, _ *provider.Provider, h *hooks) {
			h.receive = func(_ *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
				for ctx.Err() == nil { // it ends with the connection
					short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
					ds, err := call(short, lanes, most)
					cancel()
					if len(ds) > 0 || ctx.Err() != nil || errors.Is(err, provider.ErrClosed) {
						return ds, err
					}
					if c.isCut() && lanes[0] == work && most == 1 {
						return nil, errCut
					}
				}
				return nil, ctx.Err()
			}
		}),
		behind("outage/publish", "want unknown or refused", func(c *cable, _ *provider.Provider, h *hooks) {
			h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
				if c.isCut() { // it is sent, and that will do
					return storedAll(jobs)
				}
				return call(ctx, jobs, opts)
			}
		}),
		behind("outage/settle", "settled after the outage", func(c *cable, _ *provider.Provider, h *hooks) {
			var broken marks // it never recovers
			h.ack = func(d *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
				if c.isCut() {
					broken.set(d)
				}
				if broken.has(d) {
					return errCut
				}
				return call(ctx, next)
			}
		}),
		behind("outage/health and events", "Health is an error", func(_ *cable, p *provider.Provider, _ *hooks) {
			health := p.Health
			p.Health = func(ctx context.Context) error { // healthy but deaf
				if err := health(ctx); !errors.Is(err, errCut) {
					return err
				}
				return nil
			}
		}),
		behind("outage/promote lives on", "Promote: the cable is cut", func(c *cable, p *provider.Provider, _ *hooks) {
			d := p.Delays
			p.Delays = &brokenDelays{Delays: d, promote: func(ctx context.Context, publish provider.Publish) error {
				for ctx.Err() == nil {
					short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
					err := d.Promote(short, publish)
					cancel()
					if err != nil {
						return err
					}
					if c.isCut() {
						return errCut
					}
				}
				return nil
			}}
		}),
	}
}

// TestOutages runs the checks of outages, and of crashes of the broker, behind a
// cable that behaves.
func TestOutages(t *testing.T) {
	run(t, append(outageChecks(), factsChecks()...), func(t *testing.T) Harness {
		h, _ := cabled(inMemory(t))
		h.Crash = func() error { return nil }
		return h
	})
}
