package providertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/backstage-go/backstage/runtime/provider"
	backstagev1 "github.com/backstage-go/backstage/schema/backstage/v1"
)

// alone makes a mutant whose openings share nothing.
func alone(mutate func(p *provider.Provider, h *hooks)) func() func(*provider.Provider, *hooks) {
	return func() func(*provider.Provider, *hooks) { return mutate }
}

// storedAll answers that jobs are stored, whatever is true.
func storedAll(jobs []provider.Job) []provider.Stored {
	stored := make([]provider.Stored, len(jobs))
	for i, j := range jobs {
		stored[i] = provider.Stored{ID: j.ID, Outcome: provider.OutcomeStored}
	}
	return stored
}

// with changes copies of jobs.
func with(jobs []provider.Job, change func(i int, j *provider.Job)) []provider.Job {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		change(i, &jobs[i])
	}
	return jobs
}

// crowd counts calls that are under way at once.
type crowd struct{ n atomic.Int64 }

// join reports how many are under way, this one included, after a moment in which
// others may join.
func (c *crowd) join() (n int64, leave func()) {
	n = c.n.Add(1)
	time.Sleep(time.Millisecond)
	return n, func() { c.n.Add(-1) }
}

func mutants() []mutant {
	return slices.Concat(
		publishMutants(), receiveMutants(), settleMutants(), leaseMutants(), orderMutants(), dedupeMutants(),
		claimsMutants(), delaysMutants(), lendMutants(), deadMutants(), statsMutants(), closeMutants(),
		factsMutants(), outageMutants(),
	)
}

func publishMutants() []mutant {
	return []mutant{
		{
			fails: "publish/stored", says: "24 of 25 deliveries came",
			make: alone(func(_ *provider.Provider, h *hooks) { // the last of a large batch is lost
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					if len(jobs) == 25 {
						return append(call(ctx, jobs[:24], opts), storedAll(jobs[24:])...)
					}
					return call(ctx, jobs, opts)
				}
			}),
		}, {
			fails: "publish/whole record", says: "got",
			make: alone(func(_ *provider.Provider, h *hooks) { // large payloads are cut
				h.job = func(_ *hookedDelivery, j *provider.Job) *provider.Job {
					c := *j
					c.Payload = c.Payload[:min(len(c.Payload), 64<<10)]
					return &c
				}
			}),
		}, {
			fails: "publish/whole record", says: "got",
			also: []string{"settle/next", "settle/retry keeps fields", "settle/release counts as nothing", "lease/takeover",
				"dead/letter", "dead/replay"},
			make: alone(func(_ *provider.Provider, h *hooks) { // fields of a newer version are dropped
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					return call(ctx, with(jobs, func(_ int, j *provider.Job) { *j = known(*j) }), opts)
				}
				h.ack = func(_ *hookedDelivery, ctx context.Context, next []provider.Job, call ackCall) error {
					return call(ctx, with(next, func(_ int, j *provider.Job) { *j = known(*j) }))
				}
			}),
		}, {
			fails: "publish/several queues", says: "deliveries came",
			make: alone(func(_ *provider.Provider, h *hooks) { // a name that is not plain is another's
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					return call(ctx, with(jobs, func(_ int, j *provider.Job) {
						if j.Queue == "über/queue with spaces" {
							j.Queue = work
						}
					}), opts)
				}
			}),
		}, {
			fails: "publish/same id", says: "want stored",
			make: func() func(*provider.Provider, *hooks) { // an id is a dedupe key while it waits
				var waiting sync.Map
				return func(_ *provider.Provider, h *hooks) {
					h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
						if _, waits := waiting.LoadOrStore(jobIDs(jobs), true); waits && len(jobs) == 1 && jobs[0].Dedupe.Key == "" {
							return []provider.Stored{{ID: jobs[0].ID, Outcome: provider.OutcomeDuplicate, Holder: jobs[0].ID}}
						}
						return call(ctx, jobs, opts)
					}
					h.job = func(_ *hookedDelivery, j *provider.Job) *provider.Job {
						waiting.Delete(j.ID)
						return j
					}
				}
			},
		}, {
			fails: "publish/ended context", says: "was refused",
			make: alone(func(_ *provider.Provider, h *hooks) { // refused, and stored all the same
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					if ctx.Err() == nil {
						return call(ctx, jobs, opts)
					}
					stored := call(context.WithoutCancel(ctx), jobs, opts)
					for i := range stored {
						stored[i].Outcome, stored[i].Err = provider.OutcomeRefused, ctx.Err()
					}
					return stored
				}
			}),
		}, {
			fails: "publish/many at once", says: "of 480 deliveries came",
			make: func() func(*provider.Provider, *hooks) { // a full flush drops one
				var c crowd
				return func(_ *provider.Provider, h *hooks) {
					h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
						n, leave := c.join()
						defer leave()
						if n == 32 && jobs[0].Dedupe.Key == "" {
							return storedAll(jobs)
						}
						return call(ctx, jobs, opts)
					}
				}
			},
		}, {
			fails: "publish/durable", says: "of 10 deliveries came",
			make: alone(func(p *provider.Provider, h *hooks) { // its jobs end with it
				h.facts = func(f provider.JobFacts) provider.JobFacts {
					f.Durable = true
					return f
				}
				var mine atomic.Int64
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					mine.Store(int64(len(jobs)))
					return call(ctx, jobs, opts)
				}
				var subscribed atomic.Bool
				h.subscribe = func(ctx context.Context, opts provider.SubscribeOptions, call subscribeCall) (provider.Subscription, error) {
					subscribed.Store(true)
					return call(ctx, opts)
				}
				jobs, end := p.Jobs, p.Close
				p.Close = func(ctx context.Context) error {
					if mine.Load() == 10 && !subscribed.Load() {
						drain(ctx, jobs, work)
					}
					return end(ctx)
				}
			}),
		}, {
			fails: "publish/bound", says: "want ErrQueueFull",
			make: alone(func(_ *provider.Provider, h *hooks) { // it does not say why
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					stored := call(ctx, jobs, opts)
					for i, s := range stored {
						if errors.Is(s.Err, provider.ErrQueueFull) {
							stored[i].Err = context.DeadlineExceeded
						}
					}
					return stored
				}
			}),
		}, {
			fails: "publish/bound frees", says: "did not wait",
			make: alone(func(_ *provider.Provider, h *hooks) { // nobody waits for room
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					if !opts.Accepted {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
						defer cancel()
					}
					return call(ctx, jobs, opts)
				}
			}),
		}, {
			fails: "publish/bound passes accepted", says: "want stored",
			make: alone(func(_ *provider.Provider, h *hooks) { // the bound is for all
				h.publish = func(ctx context.Context, jobs []provider.Job, opts provider.PublishOptions, call publishCall) []provider.Stored {
					opts.Accepted = opts.Accepted && jobs[0].Dedupe.Key != ""
					return call(ctx, jobs, opts)
				}
			}),
		},
	}
}

// known drops the fields of a newer version.
func known(j provider.Job) provider.Job {
	b, err := provider.Marshal(&j)
	if err != nil {
		return j
	}
	var r backstagev1.Record
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, &r); err != nil {
		return j
	}
	b, _ = proto.Marshal(&r)
	k, err := provider.Unmarshal(b)
	if err != nil {
		return j
	}
	k.Delay = j.Delay
	return k
}

// jobIDs is the id of one job, or something that no id is.
func jobIDs(jobs []provider.Job) string {
	if len(jobs) != 1 {
		return "a batch"
	}
	return jobs[0].ID
}

// drain acknowledges all that waits in a queue.
func drain(ctx context.Context, jobs provider.Jobs, queue string) {
	s, err := jobs.Subscribe(ctx, provider.SubscribeOptions{
		Worker: "drain", Lanes: []provider.Lane{{Queue: queue, Slots: 100}}, MaxUnsettled: 100, Lease: time.Minute,
	})
	if err != nil {
		return
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	ds, _ := s.Receive(short, []string{queue}, 100)
	for _, d := range ds {
		_ = d.Ack(ctx, nil)
	}
	_ = s.Close(ctx)
}

func receiveMutants() []mutant {
	return []mutant{
		{
			fails: "receive/max", says: "at most 7",
			make: alone(func(_ *provider.Provider, h *hooks) { // one too many
				h.receive = func(s *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					if most == 7 && s.opts.MaxUnsettled == 30 {
						most++
					}
					return call(ctx, lanes, most)
				}
			}),
		}, {
			fails: "receive/lane order", says: "want work",
			make: alone(func(_ *provider.Provider, h *hooks) { // lanes by their names
				h.receive = func(_ *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					return call(ctx, slices.Sorted(slices.Values(lanes)), most)
				}
			}),
		}, {
			fails: "receive/lane subset", says: "was asked for",
			make: alone(func(_ *provider.Provider, h *hooks) { // all lanes, those asked for first
				h.receive = func(s *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					lanes = slices.Clone(lanes)
					for _, l := range s.opts.Lanes {
						if !slices.Contains(lanes, l.Queue) {
							lanes = append(lanes, l.Queue)
						}
					}
					return call(ctx, lanes, most)
				}
			}),
		}, {
			fails: "receive/any lane wakes", says: "woke nobody",
			make: alone(func(_ *provider.Provider, h *hooks) { // with fewer slots than lanes it waits on the first
				h.receive = func(s *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					if most >= len(lanes) || len(lanes) < 4 {
						return call(ctx, lanes, most)
					}
					short, cancel := context.WithTimeout(ctx, time.Millisecond)
					defer cancel()
					if ds, _ := call(short, lanes, most); len(ds) > 0 {
						return ds, nil
					}
					return call(ctx, lanes[:1], most)
				}
			}),
		}, {
			fails: "receive/ends with its context", says: "within a second",
			make: alone(func(_ *provider.Provider, h *hooks) { // it has its own time
				h.receive = func(_ *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					late, cancel := context.WithCancel(context.WithoutCancel(ctx))
					defer cancel()
					stop := context.AfterFunc(ctx, func() {
						select {
						case <-time.After(1500 * time.Millisecond):
							cancel()
						case <-late.Done():
						}
					})
					defer stop()
					return call(late, lanes, most)
				}
			}),
		}, {
			fails: "receive/loses nothing", says: "cut off at random",
			make: alone(func(_ *provider.Provider, h *hooks) { // what comes as it ends is dropped
				h.receive = func(s *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					ds, err := call(ctx, lanes, most)
					if ctx.Err() != nil && len(ds) == 0 && s.opts.MaxUnsettled == 10 && most < 4 {
						short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Millisecond)
						defer cancel()
						_, _ = call(short, lanes, 1)
					}
					return ds, err
				}
			}),
		}, {
			fails: "receive/starts now", says: "of 9 deliveries came",
			make: alone(func(_ *provider.Provider, h *hooks) { // it reads ahead
				var ahead sync.Map // by subscription
				h.receive = func(s *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					if s.opts.MaxUnsettled != 1 {
						return call(ctx, lanes, most)
					}
					if d, read := ahead.LoadAndDelete(s); read {
						return []provider.Delivery{d.(provider.Delivery)}, nil
					}
					ds, err := call(ctx, lanes, 2)
					if len(ds) == 2 {
						ahead.Store(s, ds[1])
						ds = ds[:1]
					}
					return ds, err
				}
			}),
		}, {
			fails: "receive/one worker each", says: "was delivered 2 times",
			make: alone(func(_ *provider.Provider, h *hooks) { // one is delivered twice, in place of another
				h.receive = func(s *hookedSub, ctx context.Context, lanes []string, most int, call receiveCall) ([]provider.Delivery, error) {
					ds, err := call(ctx, lanes, most)
					if len(ds) == 10 && s.opts.MaxUnsettled == 10 && !slices.ContainsFunc(ds, func(d provider.Delivery) bool { return d.Job().Counters.Crashes > 0 }) {
						ds[9] = ds[0]
					}
					return ds, err
				}
			}),
		}, {
			fails: "receive/outlives subscribe", says: "closed",
			make: alone(func(_ *provider.Provider, h *hooks) { // it ends with the context
				h.subscribe = func(ctx context.Context, opts provider.SubscribeOptions, call subscribeCall) (provider.Subscription, error) {
					s, err := call(ctx, opts)
					if err == nil {
						context.AfterFunc(ctx, func() { _ = s.Close(context.WithoutCancel(ctx)) })
					}
					return s, err
				}
			}),
		}, {
			fails: "receive/setup", says: "no lanes works",
			make: alone(func(_ *provider.Provider, h *hooks) {
				h.subscribe = func(ctx context.Context, opts provider.SubscribeOptions, call subscribeCall) (provider.Subscription, error) {
					if len(opts.Lanes) == 0 {
						opts.Lanes = []provider.Lane{{Queue: work, Slots: 1}}
					}
					opts.MaxUnsettled = max(1, opts.MaxUnsettled)
					return call(ctx, opts)
				}
			}),
		},
	}
}
