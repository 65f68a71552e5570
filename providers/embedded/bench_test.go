package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

var txs atomic.Int64

// benchOpen opens a file for a benchmark.
func benchOpen(b *testing.B) *store {
	b.Helper()
	txs.Store(0)
	s, err := open(filepath.Join(b.TempDir(), "jobs.db"), Config{}, internals{hook: func(p string) {
		if p == "committed" {
			txs.Add(1)
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.close(context.Background()) })
	return s
}

// work receives and acknowledges with so many slots until count jobs are done.
func work(b *testing.B, s *store, slots, count int, lanes ...string) {
	b.Helper()
	opts := provider.SubscribeOptions{Worker: "w", Lease: time.Minute, MaxUnsettled: slots}
	for _, l := range lanes {
		opts.Lanes = append(opts.Lanes, provider.Lane{Queue: l, Slots: 1})
	}
	sub, err := s.Subscribe(context.Background(), opts)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done atomic.Int64
	free := make(chan struct{}, slots)
	for range slots {
		free <- struct{}{}
	}
	deliveries := make(chan provider.Delivery, slots)
	var wg sync.WaitGroup
	for range slots {
		wg.Go(func() {
			for d := range deliveries {
				if err := d.Ack(context.Background(), nil); err != nil {
					b.Error(err)
				}
				if done.Add(1) == int64(count) {
					cancel()
				}
				free <- struct{}{}
			}
		})
	}
	for ctx.Err() == nil {
		n := 0
		select {
		case <-free:
			n = 1
		case <-ctx.Done():
			continue
		}
		for len(free) > 0 {
			<-free
			n++
		}
		got, err := sub.Receive(ctx, lanes, n)
		if err != nil && ctx.Err() == nil {
			b.Error(err)
			break
		}
		for _, d := range got {
			deliveries <- d
		}
		for range n - len(got) {
			free <- struct{}{}
		}
	}
	cancel()
	close(deliveries)
	wg.Wait()
	_ = sub.Close(context.Background())
}

// produce publishes count jobs from so many producers, one a call.
func produce(b *testing.B, s *store, producers, count int, shape func(*provider.Job, int)) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			for i := int(next.Add(1)); i <= count; i = int(next.Add(1)) {
				j := benchJob(i)
				shape(&j, i)
				if r := s.Publish(context.Background(), []provider.Job{j}, provider.PublishOptions{}); r[0].Outcome != provider.OutcomeStored {
					b.Error(r[0].Err)
				}
			}
		})
	}
	wg.Wait()
}

func benchJob(i int) provider.Job {
	return provider.Job{ID: fmt.Sprintf("job-%010d", i), Task: "bench.v1.Tasks.Do", Queue: "q", Payload: make([]byte, 100), Enqueued: time.Now(), FirstDue: time.Now()}
}

func plain(*provider.Job, int) {}

func BenchmarkEndToEnd(b *testing.B) {
	for name, shape := range map[string]func(*provider.Job, int){
		"plain": plain,
		"dedupe": func(j *provider.Job, i int) {
			j.Dedupe = provider.Dedupe{Key: j.ID, For: time.Minute}
		},
		"keyed": func(j *provider.Job, i int) { j.OrderingKey = fmt.Sprint(i % 10000) },
	} {
		b.Run(name, func(b *testing.B) {
			s := benchOpen(b)
			b.ResetTimer()
			var wg sync.WaitGroup
			wg.Go(func() { produce(b, s, 64, b.N, shape) })
			work(b, s, 100, b.N, "q")
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric(float64(txs.Load()), "tx")
		})
	}
}

// fill publishes count jobs in large calls.
func fill(b *testing.B, s *store, count int, shape func(*provider.Job, int)) {
	b.Helper()
	for i := 0; i < count; {
		var jobs []provider.Job
		for ; i < count && len(jobs) < 1000; i++ {
			j := benchJob(i)
			shape(&j, i)
			jobs = append(jobs, j)
		}
		for _, r := range s.Publish(context.Background(), jobs, provider.PublishOptions{}) {
			if r.Outcome != provider.OutcomeStored {
				b.Fatal(r.Err)
			}
		}
	}
}

// BenchmarkDrain works off a backlog, and counts the time of its first b.N jobs.
func BenchmarkDrain(b *testing.B) {
	for _, c := range []struct {
		name      string
		more, key int
	}{{"only", 0, 0}, {"of a million", 1_000_000, 0}, {"with 50000 of one key", 0, 50_000}} {
		b.Run(c.name, func(b *testing.B) {
			s := benchOpen(b)
			fill(b, s, c.key, func(j *provider.Job, _ int) { j.OrderingKey = "k" })
			fill(b, s, b.N+c.more, plain)
			b.ResetTimer()
			work(b, s, 100, b.N, "q")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkPromote moves jobs that fall due at once, and counts the time of the first
// b.N, while 50,000 more of one ordering key are due too.
func BenchmarkPromote(b *testing.B) {
	const waiting = 50_000
	for _, c := range []struct {
		name      string
		publishes bool // through publish, as a borrower's
		shape     func(*provider.Job, int)
	}{
		{"own without key", false, plain},
		{"own of one key", false, func(j *provider.Job, _ int) { j.OrderingKey = "k" }},
		{"lent without key", true, func(j *provider.Job, i int) {
			if i < waiting {
				j.OrderingKey = "k"
			}
		}},
		{"lent of one key", true, func(j *provider.Job, _ int) { j.OrderingKey = "k" }},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := benchOpen(b)
			due := provider.Delays(s.delays)
			if c.publishes {
				due, _ = s.lend("borrower")
			}
			for i := 0; i < waiting+b.N; {
				var jobs []provider.Job
				for ; i < waiting+b.N && len(jobs) < 1000; i++ {
					j := benchJob(i)
					c.shape(&j, i)
					jobs = append(jobs, j)
				}
				for _, r := range due.Hold(context.Background(), jobs) {
					if r.Outcome != provider.OutcomeStored {
						b.Fatal(r.Err)
					}
				}
			}
			ctx, cancel := context.WithCancel(context.Background())
			b.ResetTimer()
			var publish provider.Publish
			promoted := 0
			if c.publishes {
				publish = func(_ context.Context, jobs []provider.Job) []provider.Stored {
					stored := make([]provider.Stored, len(jobs))
					for i := range stored {
						stored[i].Outcome = provider.OutcomeStored
					}
					if promoted += len(jobs); promoted >= b.N {
						cancel()
					}
					return stored
				}
			} else {
				go func() {
					defer cancel()
					again := time.NewTicker(time.Millisecond)
					defer again.Stop()
					for n := int64(waiting + 1); n > waiting; <-again.C {
						held, err := due.Held(context.Background(), "q")
						if err != nil {
							b.Error(err)
							return
						}
						n, _ = held.Get()
					}
				}()
			}
			if err := due.Promote(ctx, publish); err != nil {
				b.Error(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
