// Command delays measures how late delayed jobs start on RabbitMQ: those that the
// broker itself keeps (the ladder), and those that a Redis keeps which has lent its
// delays, both on servers of their own.
//
//	go run ./rabbitmq/delays
//	go run ./rabbitmq/delays -apart 1s -many 2000
//
// Two things are measured, from the time at which a job is due to the start of its
// handler: jobs one after the other, with nothing else to do; and many at once, with
// random delays of up to five seconds, enqueued in calls of 1,000 by four producers. A
// job is due after its delay from the call that enqueues it, so that what the call
// takes is part of what is late.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/backstage-go/backstage/bench/internal/measure"
	"github.com/backstage-go/backstage/bench/rabbitmq/internal/server"
	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/providers/rabbitmq"
	"github.com/backstage-go/backstage/providers/redisstreams"
	"github.com/backstage-go/backstage/runtime/provider"
)

// plan is what is measured.
type plan struct {
	apart  []time.Duration // the delays of single jobs
	each   int             // jobs for each of them
	many   []int           // how many jobs at once
	slots  int
	server *server.Server
	redis  *brokers.Redis
	out    io.Writer
}

func main() {
	p := plan{out: os.Stdout}
	apart := flag.String("apart", "1s,10s,90s", "delays of single jobs, with commas between them")
	many := flag.String("many", "2000,20000", "how many jobs at once, with commas between them")
	flag.IntVar(&p.each, "each", 3, "single jobs for each delay, together")
	flag.IntVar(&p.slots, "slots", 200, "jobs that run at once")
	flag.Parse()

	err := p.read(*apart, *many)
	if err == nil {
		err = p.main()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "delays:", err)
		os.Exit(1)
	}
}

// read reads the flags that are lists.
func (p *plan) read(apart, many string) error {
	for word := range strings.FieldsFuncSeq(apart, comma) {
		d, err := time.ParseDuration(word)
		if err != nil {
			return fmt.Errorf("-apart: %w", err)
		}
		p.apart = append(p.apart, d)
	}
	for word := range strings.FieldsFuncSeq(many, comma) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return fmt.Errorf("-many: %w", err)
		}
		p.many = append(p.many, n)
	}
	return nil
}

func comma(r rune) bool { return r == ',' }

func (p plan) main() (err error) {
	ctx := context.Background()
	if p.server, err = server.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.server.Close()) }()
	if p.redis, err = brokers.StartRedis(ctx, brokers.RedisOptions{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.redis.Close()) }()
	return p.run(ctx)
}

func (p plan) run(ctx context.Context) error {
	about, err := p.server.Describe()
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s\nfrom the time at which a job is due to the start of its handler:\n", about)
	for _, one := range []struct {
		name string
		open func(context.Context) (*provider.Provider, func() error, error)
	}{
		{"ladder", p.openLadder},
		{"lent", p.openLent},
	} {
		if err := p.measure(ctx, one.name, one.open); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return nil
}

func (p plan) openLadder(ctx context.Context) (*provider.Provider, func() error, error) {
	jobs, err := rabbitmq.Open(ctx, rabbitmq.Config{URL: p.server.URL()})
	if err != nil {
		return nil, nil, err
	}
	return jobs, func() error { return jobs.Close(ctx) }, nil
}

func (p plan) openLent(ctx context.Context) (*provider.Provider, func() error, error) {
	jobs, err := rabbitmq.Open(ctx, rabbitmq.Config{URL: p.server.URL(), Prefix: "lent", NoLadder: true})
	if err != nil {
		return nil, nil, err
	}
	lender, err := redisstreams.Open(ctx, redisstreams.Config{URL: "redis://" + p.redis.Addr()})
	if err != nil {
		return nil, nil, errors.Join(err, jobs.Close(ctx))
	}
	jobs.Delays, jobs.Claims = lender.Lend("delays")
	return jobs, func() error { return errors.Join(jobs.Close(ctx), lender.Close(ctx)) }, nil
}

// measure measures one keeper of delays.
func (p plan) measure(ctx context.Context, name string, open func(context.Context) (*provider.Provider, func() error, error)) (err error) {
	jobs, shut, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shut()) }()
	l, err := p.startLine(jobs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.stop()) }()
	// What is made for a delay that is the first of its kind is not measured.
	if _, err := l.late(ctx, []time.Duration{mixed - 1, mixed / 2, mixed / 3}); err != nil {
		return err
	}
	for _, d := range p.apart {
		var late measure.Durations
		for range p.each {
			one, err := l.late(ctx, []time.Duration{d})
			if err != nil {
				return err
			}
			late = append(late, one...)
		}
		fmt.Fprintf(p.out, "%s, single jobs of %v: %s\n", name, d, late)
	}
	for _, n := range p.many {
		late, err := l.late(ctx, random(n))
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "%s, %d at once, up to %v: %s\n", name, n, mixed, late)
	}
	return nil
}
