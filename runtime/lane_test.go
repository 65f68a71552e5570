package backstage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// TestQueuesServed: those of the registered tasks and of Serve, or those configured
// and no other.
func TestQueuesServed(t *testing.T) {
	for _, row := range []struct {
		name string
		cfg  []backstage.Queue
		want string
	}{
		{"of the tasks", nil, "started on default,old,other,q"},
		{"configured", []backstage.Queue{{Name: "z"}, {Name: "q", Weight: 3}, {Name: "old"}, {Name: "other"}, {Name: "default"}},
			"started on z,q,old,other,default"},
	} {
		inBubbleSub(t, row.name, func(r *rig) {
			r.start(backstage.WorkerConfig{Queues: row.cfg},
				handle("a", nothing, backstage.Registration{Queue: "q"}),
				handle("b", nothing, backstage.Registration{Queue: "q"}, backstage.Serve("other", "old"), backstage.Serve("other")),
				handle("c", nothing))
			if got := r.events.life("worker"); len(got) != 1 || got[0] != row.want {
				r.Errorf("worker %v, want %q", got, row.want)
			}
		})
	}
}

func TestOnQueueAndServe(t *testing.T) {
	inRounds(t, func(r *rig) {
		seen := newLedger()
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
			info, _ := backstage.InfoFrom(ctx)
			seen.write(info.Queue)
			if info.Attempt == 1 {
				return errBoom
			}
			return nil
		}, backstage.Serve("elsewhere")))
		r.enqueue(job(task("a"), "", backstage.OnQueue("elsewhere"), backstage.In(time.Minute)))
		pass(time.Hour)
		if got := seen.read(); !slices.Equal(got, []string{"elsewhere", "elsewhere"}) {
			r.Errorf("runs on %v, want both on the queue of the call: promotion and retry keep it", got)
		}
		r.wantNothingLeft("elsewhere")
	})
}

// drainOrder enqueues n jobs on each queue, starts a worker with one slot, and
// returns the queues in the order in which the jobs ran.
func drainOrder(r *rig, n int, cfg backstage.WorkerConfig) []string {
	seen := newLedger()
	var queues []string
	for _, q := range cfg.Queues {
		queues = append(queues, q.Name)
		for range n {
			r.enqueue(job(task("a"), "", backstage.OnQueue(q.Name)))
		}
	}
	cfg.Concurrency = 1
	r.start(cfg, handle("a", func(ctx context.Context, _ string) error {
		info, _ := backstage.InfoFrom(ctx)
		seen.write(info.Queue)
		return nil
	}, backstage.Serve(queues...)))
	pass(time.Minute)
	return seen.read()
}

func TestWeights(t *testing.T) {
	inBubble(t, func(r *rig) {
		order := drainOrder(r, 400, backstage.WorkerConfig{Queues: []backstage.Queue{{Name: "heavy", Weight: 3}, {Name: "light"}}})
		if len(order) != 800 {
			r.Fatalf("%d of 800 jobs ran", len(order))
		}
		light := 0
		for _, q := range order[:400] {
			if q == "light" {
				light++
			}
		}
		if light < 60 || light > 140 { // 100 on average, with a deviation of 9
			r.Errorf("while both had work %d of 400 runs were of the light queue, want about 100", light)
		}
	})
}

func TestStrictPriority(t *testing.T) {
	inBubble(t, func(r *rig) {
		order := drainOrder(r, 20, backstage.WorkerConfig{StrictPriority: true, Queues: []backstage.Queue{{Name: "first"}, {Name: "second"}}})
		if want := append(slices.Repeat([]string{"first"}, 20), slices.Repeat([]string{"second"}, 20)...); !slices.Equal(order, want) {
			r.Errorf("runs %v, want all of the first before the second", order)
		}
	})
}

// TestFixedSlots: each lane has a share by weight, which the provider keeps, and all
// are always asked for: a lane whose slot becomes free is not left out of a call
// that waits.
func TestFixedSlots(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.hooks.facts = func(f *provider.JobFacts) { f.FixedSlots = true }
		var slots []int
		r.hooks.subscribe = func(opts provider.SubscribeOptions) error {
			for _, lane := range opts.Lanes {
				slots = append(slots, lane.Slots)
			}
			if opts.MaxUnsettled != 10 {
				r.Errorf("MaxUnsettled = %d, want the 10 slots", opts.MaxUnsettled)
			}
			return nil
		}
		asked := newLedger()
		r.hooks.receive = func(_ context.Context, lanes []string, most int, do func() ([]provider.Delivery, error)) ([]provider.Delivery, error) {
			slices.Sort(lanes)
			asked.write(fmt.Sprint(strings.Join(lanes, ","), " ", most))
			return do()
		}
		release := make(chan struct{})
		r.start(backstage.WorkerConfig{Concurrency: 10, Queues: []backstage.Queue{{Name: "a", Weight: 8}, {Name: "b", Weight: 1}, {Name: "c", Weight: 1}}},
			handle("a", func(context.Context, string) error { <-release; return nil }, backstage.Serve("b", "c"), backstage.Registration{Queue: "a"}))
		if !slices.Equal(slots, []int{8, 1, 1}) {
			r.Errorf("slots %v, want 8, 1, 1", slots)
		}
		r.enqueue(job(task("a"), "", backstage.OnQueue("b")))
		pass(time.Second)
		if got := asked.read(); got[len(got)-1] != "a,b,c 9" {
			r.Errorf("asked for %q with one slot taken, want all lanes and 9", got[len(got)-1])
		}
		close(release)
		for range 20 {
			r.enqueue(job(task("a"), "", backstage.OnQueue("c")))
		}
		pass(time.Second)
		r.wantNothingLeft("a", "b", "c")
	})
}

func TestSharesOfSmallLanes(t *testing.T) {
	for _, row := range []struct {
		slots  int
		weight []int
		want   []int
	}{
		{4, []int{1, 1, 1, 1}, []int{1, 1, 1, 1}},
		{10, []int{100, 1, 1, 1}, []int{7, 1, 1, 1}},
		{7, []int{1, 1, 1}, []int{3, 2, 2}},
		{20, []int{1}, []int{20}},
	} {
		inBubbleSub(t, "", func(r *rig) {
			r.hooks.facts = func(f *provider.JobFacts) { f.FixedSlots = true }
			var got []int
			r.hooks.subscribe = func(opts provider.SubscribeOptions) error {
				for _, lane := range opts.Lanes {
					got = append(got, lane.Slots)
				}
				return nil
			}
			cfg := backstage.WorkerConfig{Concurrency: row.slots}
			for i, w := range row.weight {
				cfg.Queues = append(cfg.Queues, backstage.Queue{Name: string(rune('a' + i)), Weight: w})
			}
			r.start(cfg, handle("a", nothing, backstage.Registration{Queue: "a"}))
			if !slices.Equal(got, row.want) {
				r.Errorf("%d slots by weights %v are shared as %v, want %v", row.slots, row.weight, got, row.want)
			}
		})
	}
}

func TestFixedSlotsRefuseWhatTheyCannotDo(t *testing.T) {
	for name, cfg := range map[string]backstage.WorkerConfig{
		"too many lanes":  {Concurrency: 1, Queues: []backstage.Queue{{Name: "default"}, {Name: "b"}}},
		"strict priority": {StrictPriority: true, Queues: []backstage.Queue{{Name: "default"}}},
	} {
		inBubbleSub(t, name, func(r *rig) {
			r.hooks.facts = func(f *provider.JobFacts) { f.FixedSlots = true }
			err := r.newWorker(cfg, handle("a", nothing)).Run(r.Context())
			var setup *provider.SetupError
			if !errors.As(err, &setup) || setup.Remedy == "" {
				r.Errorf("Run = %v, want a *SetupError with a remedy", err)
			}
		})
	}
}

// TestConcurrency: one Receive takes no more than there are free slots, and
// settling does not hold one.
func TestConcurrency(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.hooks.receive = func(_ context.Context, _ []string, most int, do func() ([]provider.Delivery, error)) ([]provider.Delivery, error) {
			if most < 1 || most > 5 {
				r.Errorf("asked for %d deliveries with 5 slots", most)
			}
			return do()
		}
		var live, most, done counter
		stall := make(chan struct{})
		r.hooks.settle = func(_ string, _ provider.Delivery, do func() error) error { <-stall; return do() }
		r.start(backstage.WorkerConfig{Concurrency: 5}, handle("a", func(context.Context, string) error {
			most.n.Store(max(most.n.Load(), live.n.Add(1)))
			time.Sleep(time.Second)
			live.n.Add(-1)
			done.add()
			return nil
		}))
		for range 100 {
			r.enqueue(job(task("a"), ""))
		}
		pass(20 * time.Second)
		if most.get() != 5 {
			r.Errorf("%d handlers at once, want the 5 slots used and no more", most.get())
		}
		if n := done.get(); n <= 5 || n > 2*5+16 {
			r.Errorf("%d handlers ran while nothing could be settled; want more than the slots, at most 26", n)
		}
		close(stall)
		pass(time.Minute)
		if done.get() != 100 {
			r.Errorf("%d of 100 jobs ran", done.get())
		}
		r.wantNothingLeft()
	})
}
