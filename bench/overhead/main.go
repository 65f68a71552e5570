// Command overhead measures what the runtime costs a job, from enqueue to ack, on
// the memory provider, beyond protobuf's marshalling.
//
//	go run ./overhead -rounds 5
//
// In every round it takes four things, one after the other, over the same
// messages:
//
//   - marshalling alone: each message is marshalled as the runtime does it and
//     unmarshalled again, once;
//   - the provider alone: a hundred jobs are published, received and acked in
//     turn, without anything that waits;
//   - jobs that are enqueued one by one, by one producer, and run by a worker
//     (client, provider, worker, handler, ack);
//   - jobs that are enqueued a hundred at a time, likewise.
//
// The overhead is the difference to marshalling alone, within the round: of
// processor time, on all cores together, of time, during which producer and worker
// overlap, and of allocations. It includes the provider itself, which stores jobs
// as Go values and marshals nothing. The median of the rounds counts.
//
// Half of it is garbage collection unless the process holds something beside, as
// programs do: -heap 64 makes it 64 MiB.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/backstage-go/backstage/providers/memory"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"

	benchv1 "github.com/backstage-go/backstage/bench/gen/bench/v1"
	"github.com/backstage-go/backstage/bench/gen/bench/v1/worktasks"
	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/internal/work"
)

// plan is what is measured.
type plan struct{ rounds, jobs, slots int }

// waiting is how many jobs the producer lets wait: a backlog would measure the
// garbage collector.
const waiting = 2000

func main() {
	var p plan
	flag.IntVar(&p.rounds, "rounds", 5, "rounds")
	flag.IntVar(&p.jobs, "jobs", 300_000, "jobs a run")
	flag.IntVar(&p.slots, "slots", 100, "jobs that run at once")
	profile := flag.String("cpuprofile", "", "write a processor profile to this file")
	heap := flag.Int("heap", 0, "MiB that the process holds beside, as a program does")
	flag.Parse()
	defer measure.Hold(*heap)()

	stop, err := measure.Profile(*profile)
	if err == nil {
		defer stop()
		_, err = p.run(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

// round is four runs beside each other.
type round struct{ marshalling, provider, single, batch measure.Sample }

func (r round) singleWall() float64   { return r.single.WallPerJob() - r.marshalling.WallPerJob() }
func (r round) batchWall() float64    { return r.batch.WallPerJob() - r.marshalling.WallPerJob() }
func (r round) singleCPU() float64    { return r.single.CPUPerJob() - r.marshalling.CPUPerJob() }
func (r round) batchCPU() float64     { return r.batch.CPUPerJob() - r.marshalling.CPUPerJob() }
func (r round) singleAllocs() float64 { return r.single.AllocsPerJob() - r.marshalling.AllocsPerJob() }
func (r round) batchAllocs() float64  { return r.batch.AllocsPerJob() - r.marshalling.AllocsPerJob() }

func (p plan) run(out io.Writer) ([]round, error) {
	fmt.Fprintln(out, measure.Machine())
	fmt.Fprintf(out, "%d jobs a run, %d slots, provider memory\n", p.jobs, p.slots)
	var rounds []round
	for i := range p.rounds {
		r, err := p.round()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "round %d: ", i+1)
		for _, s := range []struct {
			name string
			measure.Sample
		}{{"marshalling", r.marshalling}, {"provider", r.provider}, {"one by one", r.single}, {"by the hundred", r.batch}} {
			fmt.Fprintf(out, "  %s %.2f µs CPU, %.2f µs, %.1f allocs", s.name, s.CPUPerJob(), s.WallPerJob(), s.AllocsPerJob())
		}
		fmt.Fprintln(out)
		rounds = append(rounds, r)
	}
	fmt.Fprintf(out, "overhead a job, one by one:     %.2f µs of CPU, %.2f µs of time, %.1f allocations\n",
		measure.MedianOf(rounds, round.singleCPU), measure.MedianOf(rounds, round.singleWall), measure.MedianOf(rounds, round.singleAllocs))
	fmt.Fprintf(out, "overhead a job, by the hundred: %.2f µs of CPU, %.2f µs of time, %.1f allocations\n",
		measure.MedianOf(rounds, round.batchCPU), measure.MedianOf(rounds, round.batchWall), measure.MedianOf(rounds, round.batchAllocs))
	fmt.Fprintf(out, "of which the provider:          %.2f µs of CPU, %.1f allocations\n",
		measure.MedianOf(rounds, func(r round) float64 { return r.provider.CPUPerJob() }),
		measure.MedianOf(rounds, func(r round) float64 { return r.provider.AllocsPerJob() }))
	return rounds, nil
}

func (p plan) round() (r round, err error) {
	if r.marshalling, err = p.marshalling(); err != nil {
		return r, err
	}
	if r.provider, err = p.provider(); err != nil {
		return r, err
	}
	if r.single, err = p.jobsOf(1); err != nil {
		return r, err
	}
	r.batch, err = p.jobsOf(100)
	return r, err
}

// marshalling is the work that is not the runtime's.
func (p plan) marshalling() (measure.Sample, error) {
	requests := work.Requests(1000)
	options := proto.MarshalOptions{Deterministic: true}
	return measure.Take(p.jobs, func() error {
		for n := range p.jobs {
			payload, err := options.Marshal(requests[n%len(requests)])
			if err != nil {
				return err
			}
			if err := proto.Unmarshal(payload, new(benchv1.PlainRequest)); err != nil {
				return err
			}
		}
		return nil
	})
}

// provider is the part of the provider, which is in the overhead.
func (p plan) provider() (measure.Sample, error) {
	ctx := context.Background()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		return measure.Sample{}, err
	}
	defer store.Close(ctx)
	const size = 100
	lanes := []string{work.Queue}
	sub, err := store.Jobs.Subscribe(ctx, provider.SubscribeOptions{
		Worker: "bench", Lanes: []provider.Lane{{Queue: work.Queue, Slots: size}}, MaxUnsettled: size, Lease: time.Minute,
	})
	if err != nil {
		return measure.Sample{}, err
	}
	jobs := make([]provider.Job, size)
	for i := range jobs {
		jobs[i] = provider.Job{ID: fmt.Sprint("job-", i), Task: worktasks.PlainName, Queue: work.Queue, Payload: make([]byte, 100)}
	}
	return measure.Take(p.jobs, func() error {
		for n := 0; n < p.jobs; n += size {
			store.Jobs.Publish(ctx, jobs, provider.PublishOptions{})
			got, err := sub.Receive(ctx, lanes, size)
			if err != nil {
				return err
			}
			for _, delivery := range got {
				if err := delivery.Ack(ctx, nil); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// jobsOf runs jobs that are enqueued so many at a time.
func (p plan) jobsOf(size int) (measure.Sample, error) {
	ctx := context.Background()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		return measure.Sample{}, err
	}
	defer store.Close(ctx)
	client, tasks, err := work.Client(store)
	if err != nil {
		return measure.Sample{}, err
	}
	counter := work.NewCounter(p.jobs)
	stop, err := work.Start(store, p.slots, counter)
	if err != nil {
		return measure.Sample{}, err
	}
	requests := work.Requests(1000)
	enqueue := func(n int) error {
		_, err := tasks.Plain(ctx, requests[n%len(requests)])
		return err
	}
	if size > 1 {
		jobs := make([]backstage.Job, size)
		enqueue = func(n int) error {
			for i := range jobs {
				jobs[i] = worktasks.PlainJob(requests[(n+i)%len(requests)])
			}
			_, err := client.Enqueue(ctx, jobs...)
			return err
		}
	}
	sample, err := measure.Take(p.jobs, func() error {
		for n := 0; n < p.jobs; n += size {
			for n-counter.Ran() > waiting {
				time.Sleep(20 * time.Microsecond)
			}
			if err := enqueue(n); err != nil {
				return err
			}
		}
		<-counter.Done()
		return work.Settled(ctx, store)
	})
	if err != nil {
		return sample, err
	}
	return sample, stop()
}
