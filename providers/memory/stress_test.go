package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime/provider"
)

// ledger notes what became of the jobs of a crowd.
type ledger struct {
	mu      sync.Mutex
	running map[string]string   // by ordering key
	ended   map[string]int      // how often an end of the job was put on record
	order   map[string][]string // the first starts of the jobs of a key
	left    sync.WaitGroup
}

func (l *ledger) start(t *testing.T, j *provider.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended[j.ID] > 0 {
		t.Errorf("%s started after its end", j.ID)
	}
	if j.OrderingKey == "" {
		return
	}
	if other := l.running[j.OrderingKey]; other != "" {
		t.Errorf("%s started while %s of its key was running", j.ID, other)
	}
	l.running[j.OrderingKey] = j.ID
	if !slices.Contains(l.order[j.OrderingKey], j.ID) {
		l.order[j.OrderingKey] = append(l.order[j.OrderingKey], j.ID)
	}
}

// stop notes the end of a run. It is called before the settlement, because the next
// job of the key may start at once.
func (l *ledger) stop(j *provider.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, j.OrderingKey)
}

func (l *ledger) end(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[id]++
	l.left.Done()
}

// TestACrowdLosesNothingAndRunsNothingTwice lets several processes publish, run and
// settle in all ways at once, in real time.
func TestACrowdLosesNothingAndRunsNothingTwice(t *testing.T) {
	t.Parallel()
	const processes, jobs, keys = 3, 400, 7
	d := newDesk(t)
	d.open(memory.Config{Bounds: map[string]int{"a": 50}})
	l := &ledger{running: map[string]string{}, ended: map[string]int{}, order: map[string][]string{}}
	l.left.Add(processes * jobs)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var crowd sync.WaitGroup
	for n := range processes {
		p := d.another()
		crowd.Go(func() { d.client(ctx, p, n, jobs, keys) })
		for range 2 {
			w := d.worker(p, "a", "b")
			crowd.Go(func() { w.serve(ctx, l) })
		}
	}
	done := make(chan struct{})
	go func() {
		l.left.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		t.Errorf("not all jobs ended within a minute: %d of %d", len(l.ended), processes*jobs)
	}
	cancel()
	crowd.Wait()
	for id, n := range l.ended {
		if n != 1 {
			t.Errorf("%s ended %d times", id, n)
		}
	}
	for key, ids := range l.order {
		for n := range processes {
			checkOrder(t, key, n, ids)
		}
	}
	for _, queue := range []string{"a", "b"} {
		n := d.numbers(queue)
		is(t, "depth of "+queue, known(t, n.Depth), 0)
		is(t, "in flight of "+queue, known(t, n.InFlight), 0)
		is(t, "held of "+queue, known(t, n.Held), 0)
	}
}

// checkOrder checks that the jobs of a key that one client published started in
// the order in which it did that.
func checkOrder(t *testing.T, key string, client int, ids []string) {
	t.Helper()
	last := -1
	for _, id := range ids {
		var of, n int
		if _, err := fmt.Sscanf(id, "%d/%d", &of, &n); err != nil {
			t.Fatal(err)
		}
		if of != client {
			continue
		}
		if n < last {
			t.Errorf("key %s: %s started after job %d of the same client", key, id, last)
		}
		last = n
	}
}

// client publishes jobs, some ordered, some delayed.
func (d *desk) client(ctx context.Context, p *provider.Provider, client, jobs, keys int) {
	for n := range jobs {
		j := provider.Job{ID: fmt.Sprintf("%d/%d", client, n), Task: "t", Queue: []string{"a", "b"}[n%2]}
		switch n % 5 {
		case 0, 1:
			j.OrderingKey = j.Queue + strconv.Itoa(n%keys)
		case 2:
			j.Delay = time.Duration(rand.IntN(20)) * time.Millisecond
		}
		if s := p.Jobs.Publish(ctx, []provider.Job{j}, provider.PublishOptions{})[0]; s.Outcome != provider.OutcomeStored {
			d.Errorf("publish: %v, %v", s.Outcome, s.Err)
		}
	}
}

// serve runs jobs until ctx ends.
func (w *worker) serve(ctx context.Context, l *ledger) {
	for ctx.Err() == nil {
		got, _ := w.Receive(ctx, w.lanes, 1+rand.IntN(8))
		rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		for _, run := range got {
			l.start(w.T, run.Job())
		}
		w.Extend(ctx, got)
		for _, run := range got {
			w.settle(run, l)
		}
	}
}

// settle settles a run in one of all ways.
func (w *worker) settle(run provider.Delivery, l *ledger) {
	l.stop(run.Job())
	var err error
	switch n := rand.IntN(10); {
	case n < 2:
		err = run.Retry(context.Background(), provider.Again{Why: provider.FailedAgain, After: time.Duration(rand.IntN(3)) * time.Millisecond})
	case n < 4:
		err = run.Release(context.Background())
	case n < 5:
		if err = run.DeadLetter(context.Background(), provider.Failure{}); err == nil {
			l.end(run.Job().ID)
		}
	default:
		if err = run.Ack(context.Background(), nil); err == nil {
			l.end(run.Job().ID)
		}
	}
	if err != nil {
		w.Errorf("settle %s: %v", run.Job().ID, err)
	}
}
