// Command drain measures how fast a backlog on the embedded provider is worked
// off, whether it is small or large, by one worker with many slots.
//
//	go run ./drain                 20,000 jobs beside 200,000
//	go run ./drain -large 1000000  beside a million
//
// Four backlogs take turns: the small and the large one, each alone and with
// 50,000 jobs more that wait on one ordering key, evenly among the first of the
// others. Jobs of one key run one at a time, so that most of them still wait when
// the others have run, which is when the run ends; those of them that ran count.
//
// A small backlog is gone in a moment, so it is drained several times in a round,
// before and after the large one, and its median counts. What is compared are
// rates and processor time a job.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/backstage-go/backstage/providers/embedded"

	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/internal/work"
)

// plan is what is measured.
type plan struct {
	rounds, small, large, keyed, slots int
	dir                                string
	profile                            string
}

// smallRuns is how often the small backlog is drained before the large one, and
// again after it.
const smallRuns = 3

func main() {
	var p plan
	flag.IntVar(&p.rounds, "rounds", 3, "rounds")
	flag.IntVar(&p.small, "small", 20_000, "jobs of the small backlog")
	flag.IntVar(&p.large, "large", 200_000, "jobs of the large backlog")
	flag.IntVar(&p.keyed, "keyed", 50_000, "jobs that wait on one ordering key")
	flag.IntVar(&p.slots, "slots", 100, "jobs that run at once")
	flag.StringVar(&p.dir, "dir", "", "folder for the files; defaults to the system's for temporary ones")
	flag.StringVar(&p.profile, "cpuprofile", "", "write a processor profile of draining one large backlog to this file, and do nothing else")
	flag.Parse()

	var err error
	if p.profile != "" {
		_, err = p.drain(p.large, 0)
	} else {
		_, err = p.run(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "drain:", err)
		os.Exit(1)
	}
}

// round is what was measured side by side: rates, and microseconds of processor
// time.
type round struct{ small, large, smallKeyed, largeKeyed figures }

type figures struct{ rate, cpu float64 }

func (r round) ratio() float64      { return r.large.rate / r.small.rate }
func (r round) keyedRatio() float64 { return r.largeKeyed.rate / r.smallKeyed.rate }

func (p plan) run(out io.Writer) ([]round, error) {
	fmt.Fprintln(out, measure.Machine())
	fmt.Fprintf(out, "%d jobs beside %d, %d slots, synchronous FULL\n", p.small, p.large, p.slots)
	var rounds []round
	for i := range p.rounds {
		r, err := p.round()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "round %d: small %s   large %s   ratio %.2f   with %d of one key: small %s   large %s   ratio %.2f\n",
			i+1, r.small, r.large, r.ratio(), p.keyed, r.smallKeyed, r.largeKeyed, r.keyedRatio())
		rounds = append(rounds, r)
	}
	fmt.Fprintf(out, "median: ratio %.2f, with %d of one key %.2f; the large backlog with them beside the large one alone: %.2f\n",
		measure.MedianOf(rounds, round.ratio), p.keyed, measure.MedianOf(rounds, round.keyedRatio),
		measure.MedianOf(rounds, func(r round) float64 { return r.largeKeyed.rate / r.large.rate }))
	return rounds, nil
}

func (f figures) String() string { return fmt.Sprintf("%.0f jobs/s %.1f µs CPU/job", f.rate, f.cpu) }

func (p plan) round() (r round, err error) {
	if r.small, r.large, err = p.beside(0); err != nil {
		return r, err
	}
	r.smallKeyed, r.largeKeyed, err = p.beside(p.keyed)
	return r, err
}

// beside drains the small and the large backlog side by side, with a number of
// jobs of one key in each.
func (p plan) beside(keyed int) (small, large figures, err error) {
	var smalls []measure.Sample
	drainSmall := func() error {
		for range smallRuns {
			s, err := p.drain(p.small, keyed)
			if err != nil {
				return err
			}
			smalls = append(smalls, s)
		}
		return nil
	}
	if err := drainSmall(); err != nil {
		return small, large, err
	}
	one, err := p.drain(p.large, keyed)
	if err != nil {
		return small, large, err
	}
	if err := drainSmall(); err != nil {
		return small, large, err
	}
	small = figures{measure.MedianOf(smalls, measure.Sample.Rate), measure.MedianOf(smalls, measure.Sample.CPUPerJob)}
	return small, figures{one.Rate(), one.CPUPerJob()}, nil
}

// drain stores a backlog, opens the file anew, and works it off.
func (p plan) drain(plain, keyed int) (measure.Sample, error) {
	dir, remove, err := measure.Dir(p.dir)
	if err != nil {
		return measure.Sample{}, err
	}
	defer remove()
	path := filepath.Join(dir, "jobs.db")
	if err := fill(path, plain, keyed); err != nil {
		return measure.Sample{}, err
	}
	ctx := context.Background()
	file, err := embedded.Open(path, embedded.Config{})
	if err != nil {
		return measure.Sample{}, err
	}
	defer file.Close(ctx)
	counter := work.NewCounter(plain)
	stopProfile, err := measure.Profile(p.profile)
	if err != nil {
		return measure.Sample{}, err
	}
	defer stopProfile()
	var stop func() error
	sample, err := measure.Take(plain, func() error {
		if stop, err = work.Start(file, p.slots, counter); err != nil {
			return err
		}
		<-counter.Done()
		return nil
	})
	if err != nil {
		return sample, err
	}
	sample.Jobs += counter.RanKeyed()
	return sample, stop()
}

func fill(path string, plain, keyed int) error {
	ctx := context.Background()
	file, err := embedded.Open(path, embedded.Config{Synchronous: embedded.Normal})
	if err != nil {
		return err
	}
	client, _, err := work.Client(file)
	if err == nil {
		err = work.Backlog(ctx, client, plain, keyed)
	}
	if closing := file.Close(ctx); err == nil {
		err = closing
	}
	return err
}
