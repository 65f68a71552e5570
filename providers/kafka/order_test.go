package kafka

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// keyed is a job with an ordering key.
func keyed(id, key string) provider.Job {
	j := aJob(id, "q")
	j.OrderingKey = key
	return j
}

func TestCountersOfAnOrderedJobOutliveItsWorker(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	s, _ := c.open()
	publish(t, s, keyed("first", "a"), keyed("second", "a"), keyed("other", "b"))
	sub := subscribe(t, s, options(5, "q"))
	for _, again := range []provider.Again{
		{Why: provider.FailedAgain, Failure: provider.Failure{Class: provider.ClassFailed, Message: "no", Attempt: 1}},
		{Why: provider.SnoozedAgain},
		{Why: provider.ParkedAgain},
	} {
		for _, d := range receive(t, sub, 1) {
			if d.job.ID == "other" {
				ack(t, d)
				d = receive(t, sub, 1)[0]
			}
			if err := d.Retry(t.Context(), again); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := sub.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	heir, _ := c.open()
	sub = subscribe(t, heir, options(5, "q"))
	for {
		d := receive(t, sub, 1)[0]
		ack(t, d)
		if d.job.ID == "other" {
			continue
		}
		want := provider.Counters{Failures: 1, Snoozes: 1, Parks: 1}
		if d.job.ID != "first" || d.job.Counters != want {
			t.Errorf("%s with %+v; want the first of its key with %+v", d.job.ID, d.job.Counters, want)
		}
		break
	}
	d := receive(t, sub, 1)[0]
	if d.job.ID != "second" || d.job.Counters != (provider.Counters{}) {
		t.Errorf("%s with %+v came then; want the second of the key, new", d.job.ID, d.job.Counters)
	}
	ack(t, d)
}

func TestAnOrderedJobThatWaitsIsNotEarlyAfterATakeover(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	s, _ := c.open()
	publish(t, s, keyed("first", "a"))
	sub := subscribe(t, s, mortal(5, "q"))
	d := receive(t, sub, 1)[0]
	const wait = 12 * time.Second // longer than the takeover
	due := time.Now().Add(wait)
	if err := d.Retry(t.Context(), provider.Again{Why: provider.SnoozedAgain, After: wait}); err != nil {
		t.Fatal(err)
	}
	s.die()
	heir, _ := c.open()
	d = receive(t, subscribe(t, heir, options(5, "q")), 1)[0]
	if early := time.Until(due); early > 0 {
		t.Errorf("it came %v early", early)
	}
	if want := (provider.Counters{Snoozes: 1}); d.job.Counters != want {
		t.Errorf("it counts %+v; want %+v: it waited while its worker died", d.job.Counters, want)
	}
	ack(t, d)
}

func TestAKeyThatWaitsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	s, _ := c.open()
	publish(t, s, keyed("first", "a"))
	sub := subscribe(t, s, options(100, "q"))
	d := receive(t, sub, 1)[0]
	jobs := make([]provider.Job, 3000)
	for i := range jobs {
		jobs[i] = keyed(fmt.Sprint("behind-", i), "a")
	}
	publish(t, s, append(jobs, keyed("other", "b"))...)
	if other := receive(t, sub, 1)[0]; other.job.ID != "other" {
		t.Errorf("%s came; want the one job of the other key, behind 3000 that wait", other.job.ID)
	} else {
		ack(t, other)
	}
	ack(t, d)
	if next := receive(t, sub, 1)[0]; next.job.ID != "behind-0" {
		t.Errorf("%s came next; want the second of the key", next.job.ID)
	} else {
		ack(t, next)
	}
}

func TestARetryWithoutAKeyIsRefused(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	s, _ := c.open()
	publish(t, s, aJob("a", "q"))
	d := receive(t, subscribe(t, s, options(1, "q")), 1)[0]
	err := d.Retry(t.Context(), provider.Again{Why: provider.SnoozedAgain})
	if !errors.Is(err, errUnkept) {
		t.Errorf("retry: %v; want that Kafka keeps nothing for later", err)
	}
	ack(t, d) // which is still open
}
