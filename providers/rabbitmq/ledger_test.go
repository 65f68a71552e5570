package rabbitmq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// ledger is what became of jobs under a fault: what was said to be stored, and what ran.
type ledger struct {
	mu      sync.Mutex
	stored  map[string]bool // accepted, or the next job of a run that was acknowledged
	ran     map[string]int
	unknown map[string]bool
	last    time.Time // of the last run
}

func newLedger() *ledger {
	return &ledger{stored: make(map[string]bool), ran: make(map[string]int), unknown: make(map[string]bool)}
}

// load publishes into some queues and works them off until stop is called. Some jobs
// have a delay, some are retried once, some have a next job.
func (l *ledger) load(t *testing.T, p *store, w *store, queues []string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for producer := range 4 {
		group.Go(func() { l.produce(ctx, p, queues, producer) })
	}
	sub := subscribe(t, w, options(5, queues...))
	group.Go(func() { l.work(ctx, t, sub, queues) })
	return func() {
		cancel()
		group.Wait()
		if err := sub.Close(context.WithoutCancel(ctx)); err != nil {
			t.Logf("close: %v", err)
		}
	}
}

func (l *ledger) produce(ctx context.Context, s *store, queues []string, producer int) {
	for n := 0; ctx.Err() == nil; n++ {
		queue := queues[n%len(queues)]
		j := aJob(fmt.Sprintf("p%d-%d", producer, n), queue)
		if n%5 == 0 {
			j.Delay = time.Duration(rand.IntN(3000)) * time.Millisecond
		}
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		stored := s.Publish(call, []provider.Job{j}, provider.PublishOptions{})[0]
		cancel()
		l.mu.Lock()
		switch stored.Outcome {
		case provider.OutcomeStored:
			l.stored[j.ID] = true
		case provider.OutcomeUnknown:
			l.unknown[j.ID] = true
		}
		l.mu.Unlock()
		if !sleep(ctx, 2*time.Millisecond) {
			return
		}
	}
}

// work runs jobs until ctx ends.
func (l *ledger) work(ctx context.Context, t *testing.T, sub *subscription, queues []string) {
	var group sync.WaitGroup
	defer group.Wait()
	for ctx.Err() == nil {
		ds, err := sub.Receive(ctx, queues, 20)
		if err != nil && ctx.Err() == nil {
			t.Errorf("receive: %v", err)
			return
		}
		for _, d := range ds {
			group.Go(func() { l.run(t.Context(), d) })
		}
	}
}

// run runs one job: it is put into the ledger, and then settled.
func (l *ledger) run(ctx context.Context, d provider.Delivery) {
	j := d.Job()
	l.mu.Lock()
	l.ran[j.ID]++
	l.last = time.Now()
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	switch n := j.ID[len(j.ID)-1]; {
	case n == '3' && j.Counters.Failures == 0:
		_ = d.Retry(ctx, provider.Again{Why: provider.FailedAgain, After: time.Second})
	case n == '7' && j.Parent == "":
		next := aJob(j.ID+"-next", j.Queue)
		next.Parent = j.ID
		if d.Ack(ctx, []provider.Job{next}) == nil {
			l.mu.Lock()
			l.stored[next.ID] = true
			l.mu.Unlock()
		}
	default:
		_ = d.Ack(ctx, nil)
	}
}

// missing are the jobs that were accepted and did not run.
func (l *ledger) missing() (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.stored {
		if l.ran[id] == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// settle waits until every job that was accepted has run, while a worker works.
func (l *ledger) settle(t *testing.T, s *store, queues []string, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for done := false; !done; done = len(l.missing()) == 0 || ctx.Err() != nil {
		l.rest(ctx, t, s, queues) // the last runs of which may have next jobs
	}
	if left := l.missing(); len(left) > 0 {
		t.Errorf("%d of %d jobs that were accepted did not run, such as %q", len(left), len(l.stored), left[:min(5, len(left))])
	}
	again := 0
	for id, n := range l.ran {
		most := 1
		if id[len(id)-1] == '3' {
			most = 2
		}
		again += max(0, n-most)
	}
	t.Logf("%d jobs were accepted, %d are not known; %d runs more than needed", len(l.stored), len(l.unknown), again)
	if again > len(l.stored)/4+50 {
		t.Errorf("%d of %d jobs ran again", again, len(l.stored))
	}
	if letters, _, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{}, ""); err != nil || len(letters) > 0 {
		t.Errorf("%d dead letters, %v; want none", len(letters), err)
	}
}

// rest works until nothing is missing.
func (l *ledger) rest(ctx context.Context, t *testing.T, s *store, queues []string) {
	sub := subscribe(t, s, options(20, queues...))
	working, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.work(working, t, sub, queues)
	}()
	for len(l.missing()) > 0 && sleep(ctx, 50*time.Millisecond) {
	}
	stop()
	<-done
	if err := sub.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// resumes waits for the next run, and says how long it took.
func (l *ledger) resumes(t *testing.T, what string, since time.Time, within time.Duration) {
	t.Helper()
	until(t, "jobs run again after "+what, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.last.After(since)
	})
	if took := time.Since(since); took > within {
		t.Errorf("jobs ran again %v after %s; want at most %v", took.Round(time.Millisecond), what, within)
	} else {
		t.Logf("jobs ran again %v after %s", took.Round(time.Millisecond), what)
	}
}
