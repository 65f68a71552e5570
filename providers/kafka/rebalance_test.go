package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// ledger is what became of jobs: what was said to be stored, what ran, and what was said
// to be settled.
type ledger struct {
	t       *testing.T
	mu      sync.Mutex
	stored  map[string]bool
	ran     map[string]int
	done    map[string]bool
	crashes int32         // the most of a job
	longest time.Duration // of a run
}

func newLedger(t *testing.T, longest time.Duration) *ledger {
	return &ledger{t: t, longest: longest, stored: make(map[string]bool), ran: make(map[string]int), done: make(map[string]bool)}
}

// produce publishes jobs until ctx ends.
func (l *ledger) produce(ctx context.Context, s *store, queue string, producer int) {
	for n := 0; sleep(ctx, 10*time.Millisecond); n++ {
		j := aJob(fmt.Sprintf("p%d-%d", producer, n), queue)
		if n%4 == 0 {
			j.OrderingKey = fmt.Sprint("key-", n%48)
		}
		stored := s.Publish(context.WithoutCancel(ctx), []provider.Job{j}, provider.PublishOptions{})[0]
		l.mu.Lock()
		l.stored[j.ID] = stored.Outcome == provider.OutcomeStored
		l.mu.Unlock()
	}
}

// run runs one job and settles it.
func (l *ledger) run(d provider.Delivery) {
	j := d.Job()
	l.mu.Lock()
	if l.done[j.ID] {
		l.t.Errorf("%s was settled and runs again, with %+v", j.ID, j.Counters)
	}
	l.ran[j.ID]++
	l.crashes = max(l.crashes, j.Counters.Crashes)
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	defer cancel()
	sleep(ctx, rand.N(l.longest))
	err := d.Ack(ctx, nil)
	switch {
	case err == nil:
		l.mu.Lock()
		l.done[j.ID] = true
		l.mu.Unlock()
	case !errors.Is(err, provider.ErrLeaseLost) && !errors.Is(err, provider.ErrClosed):
		l.t.Errorf("ack of %s: %v", j.ID, err)
	}
}

// missing is how many jobs were stored and did not run, or are not known to be settled.
func (l *ledger) missing() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, stored := range l.stored {
		if stored && l.ran[id] == 0 {
			n++
		}
	}
	return n
}

// again is how many runs there were beyond one of each job.
func (l *ledger) again() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, runs := range l.ran {
		n += runs - 1
	}
	return n
}

// comer is a worker that comes and goes.
type comer struct {
	store *store
	sub   *subscription
	stop  context.CancelFunc
	work  sync.WaitGroup
}

// come starts a worker with some slots.
func (l *ledger) come(c *cluster, name, queue string, slots int) *comer {
	s, _ := c.open()
	opts := options(slots, queue)
	opts.Worker, opts.Lease = name, 3*time.Second
	w := &comer{store: s, sub: subscribe(l.t, s, opts)}
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	free := make(chan struct{}, slots)
	w.work.Go(func() {
		for ctx.Err() == nil {
			free <- struct{}{}
			ds, _ := w.sub.Receive(ctx, []string{queue}, 1)
			if len(ds) == 0 {
				<-free
			}
			for _, d := range ds {
				w.work.Go(func() {
					l.run(d)
					<-free
				})
			}
		}
	})
	return w
}

// leave ends a worker in order: it takes nothing more, ends what it runs, and goes.
func (w *comer) leave(t *testing.T) {
	w.stop()
	w.work.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	defer cancel()
	if err := w.sub.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// die ends it as SIGKILL does.
func (w *comer) die() {
	w.store.die()
	w.stop()
}

// gather ends what is left, with one worker that stays.
func (l *ledger) gather(c *cluster, workers map[string]*comer, queue string) {
	l.t.Helper()
	last := l.come(c, "last", queue, 20)
	for _, w := range workers {
		w.leave(l.t)
	}
	until(l.t, "all jobs ran", func() bool { return l.missing() == 0 })
	until(l.t, "the queue is empty", func() bool {
		n, err := last.store.provider.Stats.Queue(l.t.Context(), queue)
		depth, _ := n.Depth.Get()
		running, _ := n.InFlight.Get()
		return err == nil && depth == 0 && running == 0
	})
	last.leave(l.t)
	l.t.Logf("%d jobs, %d runs more than needed, at most %d crashes of one", len(l.stored), l.again(), l.crashes)
}

// turmoil lets workers come and go for a while, of which some may be killed.
func turmoil(t *testing.T, kills bool, longest time.Duration) *ledger {
	c := sharedCluster(t)
	c.cfg.Partitions = 6
	l := newLedger(t, longest)
	client, _ := c.open()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(often(15, 120))*time.Second)
	defer cancel()
	var producers sync.WaitGroup
	for i := range 4 {
		producers.Go(func() { l.produce(ctx, client, "q", i) })
	}
	workers := make(map[string]*comer)
	killed := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprint("worker-", rand.IntN(3))
		switch w := workers[name]; {
		case w == nil:
			workers[name] = l.come(c, name, "q", 5)
		case kills && time.Since(killed) > 3*time.Second:
			killed = time.Now()
			w.die()
			delete(workers, name)
		default:
			w.leave(t)
			delete(workers, name)
		}
		sleep(ctx, time.Duration(rand.IntN(1500))*time.Millisecond)
	}
	producers.Wait()
	l.gather(c, workers, "q")
	return l
}

func TestWorkersThatComeAndGoInOrderRunEachJobOnce(t *testing.T) {
	t.Parallel()
	l := turmoil(t, false, 10*time.Millisecond)
	if n := l.again(); n > 0 {
		t.Errorf("%d runs more than needed while workers came and went in order; want none", n)
	}
	if l.crashes > 0 {
		t.Errorf("a job counts %d crashes, and no worker has died", l.crashes)
	}
}

func TestWorkersThatAreKilledLoseNothingAndRunNothingAgainThatWasSettled(t *testing.T) {
	t.Parallel()
	if l := turmoil(t, true, 50*time.Millisecond); l.crashes > 3 {
		t.Errorf("a job counts %d crashes", l.crashes)
	}
}
