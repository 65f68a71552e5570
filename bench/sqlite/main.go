// Command sqlite measures the embedded provider end to end, through client and
// worker, beside a hand-written SQLite loop of the same durability (package bare):
// many producers, each waiting until its job is on disk, and a worker with many
// slots, at once, in one process and one file, synchronous FULL.
//
//	go run ./sqlite -pairs 5
//
// The two take turns, and who begins a pair takes turns too. What counts is the
// ratio of their rates within a pair, and the median over the pairs.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/backstage-go/backstage/providers/embedded"

	benchv1 "github.com/backstage-go/backstage/bench/gen/bench/v1"
	"github.com/backstage-go/backstage/bench/internal/bare"
	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/internal/work"
)

// plan is what is measured.
type plan struct {
	pairs, jobs, producers, slots int
	dir                           string
}

func main() {
	var p plan
	flag.IntVar(&p.pairs, "pairs", 5, "pairs of runs")
	flag.IntVar(&p.jobs, "jobs", 100_000, "jobs a run")
	flag.IntVar(&p.producers, "producers", 64, "producers, each waiting for its enqueue")
	flag.IntVar(&p.slots, "slots", 100, "jobs that run at once")
	flag.StringVar(&p.dir, "dir", "", "folder for the files; defaults to the system's for temporary ones")
	only := flag.String("only", "", "run only bare or only backstage, for profiles")
	profile := flag.String("cpuprofile", "", "write a processor profile to this file")
	heap := flag.Int("heap", 0, "MiB that the process holds beside, as a program does")
	flag.Parse()
	defer measure.Hold(*heap)()

	stop, err := measure.Profile(*profile)
	if err == nil {
		defer stop()
		if *only != "" {
			err = p.one(*only)
		} else {
			_, err = p.run(os.Stdout)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sqlite:", err)
		os.Exit(1)
	}
}

// one runs one side alone.
func (p plan) one(side string) error {
	run := map[string]func() (measure.Sample, error){"bare": p.bare, "backstage": p.backstage}[side]
	if run == nil {
		return fmt.Errorf("-only %s: use bare or backstage", side)
	}
	for range p.pairs {
		s, err := run()
		if err != nil {
			return err
		}
		fmt.Printf("%s: %.0f jobs/s, %.1f µs of CPU and %.1f allocations a job\n", side, s.Rate(), s.CPUPerJob(), s.AllocsPerJob())
	}
	return nil
}

// pair is two runs beside each other.
type pair struct{ bare, backstage measure.Sample }

func (p pair) ratio() float64 { return p.backstage.Rate() / p.bare.Rate() }

// run measures all pairs and returns the median ratio.
func (p plan) run(out io.Writer) (float64, error) {
	fmt.Fprintln(out, measure.Machine())
	fmt.Fprintf(out, "%d jobs, %d producers, %d slots, synchronous FULL\n", p.jobs, p.producers, p.slots)
	var pairs []pair
	for i := range p.pairs {
		one, err := p.pair(i%2 == 1)
		if err != nil {
			return 0, err
		}
		fmt.Fprintf(out, "pair %d: bare %6.0f jobs/s %5.1f µs CPU/job   backstage %6.0f jobs/s %5.1f µs CPU/job   ratio %.2f\n",
			i+1, one.bare.Rate(), one.bare.CPUPerJob(), one.backstage.Rate(), one.backstage.CPUPerJob(), one.ratio())
		pairs = append(pairs, one)
	}
	ratio := measure.MedianOf(pairs, pair.ratio)
	fmt.Fprintf(out, "median: bare %6.0f jobs/s %5.1f µs CPU/job   backstage %6.0f jobs/s %5.1f µs CPU/job   ratio %.2f\n",
		measure.MedianOf(pairs, func(p pair) float64 { return p.bare.Rate() }),
		measure.MedianOf(pairs, func(p pair) float64 { return p.bare.CPUPerJob() }),
		measure.MedianOf(pairs, func(p pair) float64 { return p.backstage.Rate() }),
		measure.MedianOf(pairs, func(p pair) float64 { return p.backstage.CPUPerJob() }),
		ratio)
	return ratio, nil
}

func (p plan) pair(swapped bool) (one pair, err error) {
	if swapped {
		if one.backstage, err = p.backstage(); err != nil {
			return one, err
		}
	}
	if one.bare, err = p.bare(); err != nil || swapped {
		return one, err
	}
	one.backstage, err = p.backstage()
	return one, err
}

// bare measures the hand-written loop.
func (p plan) bare() (measure.Sample, error) {
	dir, remove, err := measure.Dir(p.dir)
	if err != nil {
		return measure.Sample{}, err
	}
	defer remove()
	queue, err := bare.Open(context.Background(), filepath.Join(dir, "jobs.db"))
	if err != nil {
		return measure.Sample{}, err
	}
	defer queue.Close()
	requests := work.Requests(1000)
	return measure.Take(p.jobs, func() error {
		var producers sync.WaitGroup
		var failed atomic.Pointer[error]
		p.produce(&producers, &failed, func() func(n int) error {
			enqueuer := queue.Enqueuer()
			return func(n int) error {
				body, err := proto.Marshal(requests[n%len(requests)])
				if err != nil {
					return err
				}
				return enqueuer.Enqueue(body)
			}
		})
		err := queue.Run(p.slots, p.jobs, func(body []byte) {
			if err := proto.Unmarshal(body, new(benchv1.PlainRequest)); err != nil {
				failed.Store(&err)
			}
		})
		producers.Wait()
		return first(err, failed.Load())
	})
}

// backstage measures the embedded provider.
func (p plan) backstage() (measure.Sample, error) {
	ctx := context.Background()
	dir, remove, err := measure.Dir(p.dir)
	if err != nil {
		return measure.Sample{}, err
	}
	defer remove()
	file, err := embedded.Open(filepath.Join(dir, "jobs.db"), embedded.Config{})
	if err != nil {
		return measure.Sample{}, err
	}
	defer file.Close(ctx)
	_, tasks, err := work.Client(file)
	if err != nil {
		return measure.Sample{}, err
	}
	requests := work.Requests(1000)
	counter := work.NewCounter(p.jobs)
	var stop func() error
	sample, err := measure.Take(p.jobs, func() error {
		var producers sync.WaitGroup
		var failed atomic.Pointer[error]
		p.produce(&producers, &failed, func() func(n int) error {
			return func(n int) error {
				_, err := tasks.Plain(ctx, requests[n%len(requests)])
				return err
			}
		})
		if stop, err = work.Start(file, p.slots, counter); err != nil {
			return err
		}
		producers.Wait()
		if failed := failed.Load(); failed != nil {
			return *failed
		}
		<-counter.Done()
		return work.Settled(ctx, file)
	})
	if err != nil {
		return sample, err
	}
	if err := stop(); err != nil {
		return sample, err
	}
	if ran := counter.Ran(); ran != p.jobs {
		return sample, fmt.Errorf("%d jobs ran %d times", p.jobs, ran)
	}
	return sample, nil
}

// produce starts the producers, which share the jobs among them.
func (p plan) produce(group *sync.WaitGroup, failed *atomic.Pointer[error], producer func() func(n int) error) {
	var next atomic.Int64
	for range p.producers {
		enqueue := producer()
		group.Go(func() {
			for n := int(next.Add(1)); n <= p.jobs; n = int(next.Add(1)) {
				if err := enqueue(n); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
}

func first(err error, other *error) error {
	if err == nil && other != nil {
		return *other
	}
	return err
}
