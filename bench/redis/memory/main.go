// Command memory measures what jobs leave behind in Redis and in the worker: a
// backlog is enqueued and worked off on a Redis of its own (appendonly, fsync every
// second), and memory is looked at before, between and after.
//
//	go run ./redis/memory              a million jobs
//	go run ./redis/memory -jobs 100000
//
// Redis' memory is used_memory, what its allocator has given out. "Before" is after
// some jobs have run, so that streams, groups and scripts are there. The worker's heap
// is what is alive in this process after a collection, at every tenth of the backlog.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/backstage-go/backstage/bench/internal/work"
	"github.com/backstage-go/backstage/bench/redis/internal/server"
	"github.com/backstage-go/backstage/bench/redis/internal/side"
)

// plan is what is measured.
type plan struct {
	jobs, slots int
	server      *server.Server
	out         io.Writer
}

// warmup is how many jobs run before.
const warmup = 1000

func main() {
	p := plan{out: os.Stdout}
	flag.IntVar(&p.jobs, "jobs", 1_000_000, "jobs of the backlog")
	flag.IntVar(&p.slots, "slots", 100, "jobs that run at once")
	flag.Parse()

	if err := p.main(); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

func (p plan) main() error {
	return server.With(func(ctx context.Context, s *server.Server) error {
		p.server = s
		_, err := p.run(ctx)
		return err
	})
}

// result is what was measured, in bytes.
type result struct {
	before, full, after   int64  // Redis
	keysBefore, keysAfter int64  // of that, all keys with what they hold
	firstTenth, lastTenth uint64 // the worker
}

func (r result) left() int64 { return r.after - r.before }

func (p plan) run(ctx context.Context) (r result, err error) {
	about, err := p.server.Describe(ctx)
	if err != nil {
		return r, err
	}
	fmt.Fprintf(p.out, "%s\n%d jobs with a payload of %d bytes, %d slots\n", about,
		p.jobs, proto.Size(work.Request(p.jobs)), p.slots)
	if err := p.server.Clear(ctx); err != nil {
		return r, err
	}
	s, err := side.NewBackstage(ctx, p.server.Options())
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	if err := p.drain(ctx, s, warmup, nil); err != nil {
		return r, err
	}
	if r.before, err = p.resting(ctx); err != nil {
		return r, err
	}
	if r.keysBefore, err = p.keys(ctx); err != nil {
		return r, err
	}
	err = p.drain(ctx, s, p.jobs, func(tenth int) error { return p.look(ctx, tenth, &r) })
	if err != nil {
		return r, err
	}
	if r.after, err = p.resting(ctx); err != nil {
		return r, err
	}
	if r.keysAfter, err = p.keys(ctx); err != nil {
		return r, err
	}
	rss, err := p.server.Number(ctx, "memory", "used_memory_rss")
	if err != nil {
		return r, err
	}
	fmt.Fprintf(p.out, "Redis: before %s, full %s (%.0f bytes a waiting job), after %s: %+.1f %% and %+.2f MiB; resident %s\n",
		mib(r.before), mib(r.full), float64(r.full-r.before)/float64(p.jobs), mib(r.after),
		100*float64(r.left())/float64(r.before), float64(r.left())/(1<<20), mib(rss))
	fmt.Fprintf(p.out, "its keys: %d bytes before, %d after; the rest is Redis' own (buffers, scripts)\n", r.keysBefore, r.keysAfter)
	return r, nil
}

// look notes memory at a tenth of the way; tenth 0 is the full backlog.
func (p plan) look(ctx context.Context, tenth int, r *result) (err error) {
	used, err := p.server.Number(ctx, "memory", "used_memory")
	if err != nil {
		return err
	}
	heap := alive()
	switch tenth {
	case 0:
		r.full = used
	case 1:
		r.firstTenth = heap
	case 10:
		r.lastTenth = heap
	}
	fmt.Fprintf(p.out, "%2d0 %% done: Redis %s, heap %s\n", tenth, mib(used), mib(int64(heap)))
	return nil
}

// drain enqueues a backlog and works it off. It calls look, if that is not nil, with
// the full backlog and at every tenth of the way.
func (p plan) drain(ctx context.Context, s side.Side, count int, look func(tenth int) error) error {
	if err := s.Fill(ctx, count); err != nil {
		return err
	}
	tally := side.NewTally(count)
	if look != nil {
		if err := look(0); err != nil {
			return err
		}
	}
	stop, err := s.Start(p.slots, tally.Ran)
	if err != nil {
		return err
	}
	for tenth := 1; tenth <= 10 && look != nil && err == nil; tenth++ {
		if err = tally.WaitFor(ctx, count*tenth/10); err == nil {
			err = look(tenth)
		}
	}
	if err == nil {
		err = tally.Wait(ctx)
	}
	if lost, twice := tally.Lost(), tally.Twice(); err == nil && lost+twice > 0 {
		err = fmt.Errorf("%d jobs lost, %d run twice", lost, twice)
	}
	return errors.Join(err, stop())
}

// resting returns used_memory when it no longer falls: Redis frees some things later.
func (p plan) resting(ctx context.Context) (int64, error) {
	const step = 500 * time.Millisecond
	least, err := p.server.Number(ctx, "memory", "used_memory")
	for unchanged := 0; unchanged < 4 && err == nil; unchanged++ {
		time.Sleep(step)
		var used int64
		if used, err = p.server.Number(ctx, "memory", "used_memory"); used < least {
			least, unchanged = used, 0
		}
	}
	return least, err
}

// keys returns the bytes of all keys with what they hold.
func (p plan) keys(ctx context.Context) (total int64, err error) {
	names, err := p.server.Client().Keys(ctx, "*").Result()
	for _, name := range names {
		bytes, err := p.server.Client().MemoryUsage(ctx, name, 0).Result() // 0: every element
		if err != nil {
			return 0, err
		}
		total += bytes
	}
	return total, err
}

// alive returns the bytes of this process' heap that are in use.
func alive() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func mib(bytes int64) string { return fmt.Sprintf("%.2f MiB", float64(bytes)/(1<<20)) }
