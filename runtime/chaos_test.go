package backstage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// TestNothingIsLostInChaos: settlements and heartbeats fail in every way, workers
// come and go, processes die. In the end each job is done or dead with a reason,
// each chain has gone on, and no process ran a job beside itself.
func TestNothingIsLostInChaos(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inRounds(t, func(r *rig) { chaos(r, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

// dice is a source of chance for many goroutines.
type dice struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

func (d *dice) roll(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.IntN(n)
}

func chaos(r *rig, rnd *rand.Rand) {
	const jobs = 200
	d := &dice{rnd: rnd}
	var (
		mu       sync.Mutex
		done     = map[string]int{} // runs that said nil, by payload
		children = map[string]int{}
	)
	faults := func(h *hooks) {
		h.settle = func(_ string, _ provider.Delivery, do func() error) error {
			switch d.roll(20) {
			case 0: // not sent
				return errBoom
			case 1: // sent, and the answer is lost
				_ = do()
				return errBoom
			case 2: // cut off
				return &provider.LostError{Stored: provider.OutcomeUnknown}
			}
			return do()
		}
		h.extend = func(_ context.Context, n int, do func() []error) []error {
			errs := make([]error, n)
			switch d.roll(4) {
			case 0:
				for i := range errs {
					errs[i] = errBoom
				}
				return errs
			case 1:
				return errs // it never arrives
			}
			return do()
		}
	}
	a := func(process *sync.Map) handled {
		return chain("a", func(ctx context.Context, in string, next *backstage.Next) error {
			if _, beside := process.LoadOrStore(in, true); beside {
				r.Errorf("job %s runs beside itself in one process", in)
			}
			defer process.Delete(in)
			ignores := d.roll(10) == 0
			select {
			case <-time.After(time.Duration(d.roll(20_000)) * time.Millisecond):
			case <-ctx.Done():
				if !ignores {
					return ctx.Err()
				}
				<-time.After(40 * time.Second) // a bubble's time
			}
			switch d.roll(12) {
			case 0:
				return errBoom
			case 1:
				panic("boom")
			case 2:
				return backstage.Snooze(time.Duration(d.roll(10)) * time.Second)
			}
			add(next, task("b"), in, backstage.In(time.Duration(d.roll(2))*time.Second))
			mu.Lock()
			defer mu.Unlock()
			done[in]++
			return nil
		}, backstage.Policy{MaxAttempts: 1000, Timeout: 30 * time.Second, Backoff: backstage.Backoff{Base: time.Second, Cap: 5 * time.Second}})
	}
	b := handle("b", func(_ context.Context, in string) error {
		mu.Lock()
		defer mu.Unlock()
		children[in]++
		return nil
	}, backstage.Policy{MaxAttempts: 1000})
	delays, claims := r.p.Delays, r.p.Claims
	process := func() (*running, *rig) {
		o := r.other()
		if delays.Facts().Lent {
			o.p.Delays, o.p.Claims = delays, claims
		}
		faults(o.hooks)
		return o.start(backstage.WorkerConfig{Concurrency: 8, Lease: 10 * time.Second, ShutdownGrace: 5 * time.Second}, a(new(sync.Map)), b), o
	}
	ids := map[string]string{}
	for i := range jobs {
		in := fmt.Sprint(i)
		ids[r.enqueue(job(task("a"), in)).ID] = in
	}
	for range 20 {
		w, o := process()
		_, _ = process()
		pass(time.Duration(10+d.roll(20)) * time.Second)
		if d.roll(2) == 0 {
			r.store.Drop(o.p)
		}
		if err := w.stop(); err != nil && !errors.Is(err, provider.ErrClosed) {
			r.Logf("a worker stopped: %v", err)
		}
	}
	// And then all is well.
	calm := r.other()
	if delays.Facts().Lent {
		calm.p.Delays, calm.p.Claims = delays, claims
	}
	calm.start(backstage.WorkerConfig{Concurrency: 50, Lease: 10 * time.Second}, a(new(sync.Map)), b)
	pass(3 * time.Hour)

	dead := map[string]bool{}
	for _, letter := range r.dead() {
		if letter.Failure.Class != provider.ClassCrashed {
			r.Errorf("dead letter %+v of job %s, want none but those that crashed", letter.Failure, letter.Job.ID)
		}
		dead[letter.Job.ID] = true
	}
	mu.Lock()
	defer mu.Unlock()
	lost := 0
	for id, in := range ids {
		if dead[id] {
			continue
		}
		if done[in] == 0 || children[in] == 0 {
			lost++
			if lost < 4 {
				r.Errorf("job %s: done %d times, next job ran %d times; life: %v", in, done[in], children[in], r.events.life(id))
			}
		}
	}
	if lost > 0 {
		r.Errorf("%d of %d jobs or their next ones are lost", lost, jobs)
	}
	settled, _ := eventsOf[backstage.JobSettled](r.events)
	losses, _ := eventsOf[backstage.LeaseLost](r.events)
	r.Logf("%d settlements, %d lost leases, %d jobs dead as crashed", len(settled), len(losses), len(dead))
	stats, _ := r.p.Stats.Queue(context.Background(), backstage.DefaultQueue)
	if n, _ := stats.InFlight.Get(); n != 0 {
		r.Errorf("%d jobs are in flight in the end", n)
	}
}
