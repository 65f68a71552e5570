package memory_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	"github.com/backstage-go/backstage/runtime/provider"
)

// kill dead-letters n jobs of a queue, one a second.
func (d *desk) kill(n int, queue string) {
	d.Helper()
	w := d.worker(d.p, queue)
	for range n {
		d.publish(d.job(queue))
		d.bury(w.receive(1)[0])
		time.Sleep(time.Second)
	}
	if err := w.Close(d.Context()); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) list(filter provider.DeadFilter, page string) (ids []string, next string) {
	d.Helper()
	letters, next, err := d.p.Dead.List(d.Context(), filter, page)
	if err != nil {
		d.Fatalf("list: %v", err)
	}
	for _, l := range letters {
		ids = append(ids, l.Job.ID)
	}
	return ids, next
}

func TestAFullDeadLetterStoreIsAnErrorAndSettlesNothing(t *testing.T) {
	simulated(t, func(d *desk) {
		d.open(memory.Config{MaxDead: 2})
		d.kill(2, "q")
		var events []provider.Event
		d.p.Events.Observe(func(e provider.Event) { events = append(events, e) })
		d.publish(d.job("q", named("a"), untilDone("key")))
		run := d.worker(d.p, "q").one("a")
		for range 3 {
			if err := run.DeadLetter(d.Context(), provider.Failure{}); !errors.Is(err, provider.ErrDeadFull) {
				d.Fatalf("dead-letter: %v; want ErrDeadFull", err)
			}
		}
		if len(events) != 1 || events[0].Kind != provider.Degraded || events[0].Queue != "q" {
			d.Errorf("events: %+v; want one that says that the store is full", events)
		}
		if err := run.Ack(d.Context(), nil); !errors.Is(err, provider.ErrSettled) {
			d.Errorf("ack after a try to dead-letter: %v; want ErrSettled", err)
		}
		is(d.T, "in flight", known(d.T, d.numbers("q").InFlight), 1)
		is(d.T, "key is held by", d.try(d.job("q", untilDone("key"))).Holder, "a")
		d.p.Dead.Discard(d.Context(), d.letters()[0].Address)
		d.bury(run)
		is(d.T, "dead", known(d.T, d.numbers("q").Dead), 2)
	})
}

func TestDeadLettersAreListedNewestFirstInPagesThatStayPut(t *testing.T) {
	simulated(t, func(d *desk) {
		start := time.Now()
		d.kill(5, "q") // job-1 to job-5
		d.kill(2, "r") // job-6, job-7
		ids, page := d.list(provider.DeadFilter{Limit: 3}, "")
		is(d.T, "first page", fmt.Sprint(ids), "[job-7 job-6 job-5]")
		d.kill(1, "q")
		d.p.Dead.Discard(d.Context(), page) // the last of the page itself
		ids, page = d.list(provider.DeadFilter{Limit: 3}, page)
		is(d.T, "second page", fmt.Sprint(ids), "[job-4 job-3 job-2]")
		ids, page = d.list(provider.DeadFilter{Limit: 3}, page)
		is(d.T, "third page", fmt.Sprint(ids), "[job-1]")
		is(d.T, "no more pages", page, "")
		ids, page = d.list(provider.DeadFilter{Queue: "r", Limit: 2}, "")
		is(d.T, "of queue r", fmt.Sprint(ids), "[job-7 job-6]")
		is(d.T, "no more pages", page, "")
		ids, _ = d.list(provider.DeadFilter{Since: start.Add(2 * time.Second), Until: start.Add(4 * time.Second)}, "")
		is(d.T, "between the third second and the fifth", fmt.Sprint(ids), "[job-4 job-3]")
		if _, _, err := d.p.Dead.List(d.Context(), provider.DeadFilter{}, "no page"); err == nil {
			d.Error("there is a page with any name")
		}
	})
}

func TestReplayStartsAgainAtTheEndOfTheQueue(t *testing.T) {
	simulated(t, func(d *desk) {
		d.kill(1, "q")
		d.publish(d.job("q", named("a")))
		letter := d.letters()[0]
		is(d.T, "class", letter.Failure.Class, provider.ClassPermanent)
		time.Sleep(time.Hour)
		for i, want := range []provider.Outcome{provider.OutcomeStored, provider.OutcomeRefused} {
			stored, err := d.p.Dead.Replay(d.Context(), letter.Address)
			if err != nil {
				d.Fatal(err)
			}
			is(d.T, fmt.Sprint("replay ", i), stored[0].Outcome, want)
		}
		w := d.worker(d.p, "q")
		w.inOrder("a")
		run := w.one("job-1")
		is(d.T, "counters", run.Job().Counters, provider.Counters{Replays: 1})
		is(d.T, "first due", run.Job().FirstDue.Equal(time.Now()), true)
		is(d.T, "history", len(run.Job().History), 1)
		d.bury(run)
		if again := d.letters()[0].Address; again == letter.Address {
			d.Errorf("address %s is used again", again)
		}
		if _, err := d.p.Dead.Get(d.Context(), letter.Address); !errors.Is(err, provider.ErrNotFound) {
			d.Errorf("get: %v; want ErrNotFound", err)
		}
	})
}

func TestReplayNeverPassesAnotherJobsClaim(t *testing.T) {
	simulated(t, func(d *desk) {
		d.publish(d.job("q", named("dead"), untilDone("key")))
		w := d.worker(d.p, "q")
		d.bury(w.one("dead"))
		d.publish(d.job("q", named("holder"), untilDone("key")))
		address := d.letters()[0].Address
		stored, _ := d.p.Dead.Replay(d.Context(), address)
		is(d.T, "outcome", stored[0].Outcome, provider.OutcomeDuplicate)
		is(d.T, "holder", stored[0].Holder, "holder")
		is(d.T, "letters", len(d.letters()), 1)
		w.inOrder("holder")
		d.claim(d.p.Claims, "key", "another", time.Minute, false) // pending: it may be nobody's
		start := time.Now()
		stored, _ = d.p.Dead.Replay(d.Context(), address)
		is(d.T, "outcome", stored[0].Outcome, provider.OutcomeStored)
		is(d.T, "waited", time.Since(start), time.Minute)
		is(d.T, "key is held by", d.try(d.job("q", untilDone("key"))).Holder, "dead")
	})
}

func TestDiscardLeavesTheClaimOfALaterCopyAlone(t *testing.T) {
	simulated(t, func(d *desk) {
		j := d.job("q", named("a"), untilDone("key"))
		d.publish(j)
		d.bury(d.worker(d.p, "q").one("a"))
		d.publish(j)
		stored, _ := d.p.Dead.Discard(d.Context(), d.letters()[0].Address, "unknown")
		is(d.T, "outcome", stored[0].Outcome, provider.OutcomeStored)
		is(d.T, "outcome", stored[1].Outcome, provider.OutcomeRefused)
		is(d.T, "key is held by", d.try(d.job("q", untilDone("key"))).Holder, "a")
	})
}

func TestBytesThatAreNoRecordAreDeadLetteredWithAnEvent(t *testing.T) {
	simulated(t, func(d *desk) {
		var events []provider.Event
		d.p.Events.Observe(func(e provider.Event) { events = append(events, e) })
		d.open(memory.Config{MaxDead: 1})
		d.kill(1, "other") // no limit keeps them out
		d.store.Put("q", []byte("garbage"))
		j := d.job("q", named("a"))
		record, _ := provider.Marshal(&j)
		d.store.Put("q", record)
		is(d.T, "depth", known(d.T, d.numbers("q").Depth), 2)
		d.worker(d.p, "q").inOrder("a")
		if len(events) != 1 || events[0].Kind != provider.ForeignRecord || events[0].Queue != "q" {
			d.Errorf("events: %+v", events)
		}
		letter := d.letters()[0]
		is(d.T, "raw", string(letter.Raw), "garbage")
		is(d.T, "class", letter.Failure.Class, provider.ClassNoRecord)
		stored, _ := d.p.Dead.Replay(d.Context(), letter.Address)
		is(d.T, "replay", errors.Is(stored[0].Err, provider.ErrNoRecord), true)
		stored, _ = d.p.Dead.Discard(d.Context(), letter.Address)
		is(d.T, "discard", stored[0].Outcome, provider.OutcomeStored)
	})
}

func TestThousandsOfDeadLettersAreReplayedOneByOne(t *testing.T) {
	simulated(t, func(d *desk) {
		const jobs = 20_000
		w := d.worker(d.p, "q")
		for range jobs {
			d.publish(d.job("q"))
		}
		for _, run := range w.receive(jobs) {
			d.bury(run)
		}
		for {
			letters, _, _ := d.p.Dead.List(d.Context(), provider.DeadFilter{Limit: 1000}, "")
			if len(letters) == 0 {
				break
			}
			for _, l := range letters {
				if stored, err := d.p.Dead.Replay(d.Context(), l.Address); err != nil || stored[0].Outcome != provider.OutcomeStored {
					d.Fatalf("replay: %v, %v", stored, err)
				}
			}
		}
		is(d.T, "depth", known(d.T, d.numbers("q").Depth), jobs)
		is(d.T, "dead", known(d.T, d.numbers("q").Dead), 0)
	})
}
