package rabbitmq

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Acknowledgements in any order are few, and end each job once: a wrong tag would close
// the channel, and the jobs would come again.
func TestAcknowledgementsInAnyOrder(t *testing.T) {
	t.Parallel()
	s, _ := sharedBroker(t).open()
	const jobs, slots = 2000, 100
	publish(t, s, someJobs(jobs, "work")...)
	sub := subscribe(t, s, options(slots, "work"))
	var wg sync.WaitGroup
	for done := 0; done < jobs; {
		ds := receive(t, sub, 1+rand.IntN(min(slots, jobs-done)))
		done += len(ds)
		rand.Shuffle(len(ds), func(i, j int) { ds[i], ds[j] = ds[j], ds[i] })
		for _, d := range ds {
			if d.job.Counters.Crashes > 0 {
				t.Fatalf("%s came back", d.job.ID)
			}
			wg.Go(func() { ack(t, d) })
		}
	}
	wg.Wait()
	if err := sub.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if there, n, err := s.admin.exists(t.Context(), s.names.jobs("work")); !there || n != 0 || err != nil {
		t.Errorf("%d jobs are left, %v", n, err)
	}
}

// A settlement is bound to the channel of its delivery: after that has ended, tags begin
// again at 1, and the same tag is another job's.
func TestALateSettlementTouchesNoOtherJob(t *testing.T) {
	t.Parallel()
	s, _ := sharedBroker(t).open()
	publish(t, s, someJobs(2, "work")...)
	sub := subscribe(t, s, options(2, "work"))
	old := receive(t, sub, 2)
	old[0].source.conn.wire.fail(errEnded)
	fresh := receive(t, sub, 2)
	for i, d := range old {
		select {
		case <-d.Lost():
		default:
			t.Errorf("%s is not known to be lost", d.job.ID)
		}
		var lost *provider.LostError
		if err := d.Ack(t.Context(), someJobs(1, "next")); !errors.As(err, &lost) || lost.Stored != provider.OutcomeRefused {
			t.Errorf("a late ack of tag %d: %v; want a *LostError that says that nothing is stored", d.tag, err)
		}
		if err := sub.Extend(t.Context(), []provider.Delivery{d, fresh[i]}); !errors.Is(err[0], provider.ErrLeaseLost) || err[1] != nil {
			t.Errorf("heartbeats of an old and a new delivery: %v", err)
		}
	}
	ack(t, fresh...)
}

// What closes a channel takes its jobs back, and no others.
func TestAChannelThatTheBrokerClosesIsReplaced(t *testing.T) {
	t.Parallel()
	s, _ := sharedBroker(t).open()
	publish(t, s, append(someJobs(1, "work"), someJobs(1, "other")...)...)
	sub := subscribe(t, s, options(1, "work", "other"))
	var spoilt, kept *delivery
	for _, d := range receive(t, sub, 2) {
		if d.job.Queue == "work" {
			spoilt = d
		} else {
			kept = d
		}
	}
	if err := spoilt.source.ch.Ack(12345, false); err != nil { // 406
		t.Fatal(err)
	}
	again := receive(t, sub, 1)[0]
	if again.job.ID != spoilt.job.ID || again.job.Counters.Crashes == 0 {
		t.Errorf("%s came, with %+v; want %s again", again.job.ID, again.job.Counters, spoilt.job.ID)
	}
	if err := spoilt.Ack(t.Context(), nil); !errors.Is(err, provider.ErrLeaseLost) {
		t.Errorf("ack on the channel that was closed: %v", err)
	}
	ack(t, kept, again)
	until(t, "the worker is well", func() bool { return s.provider.Health(t.Context()) == nil })
}

// Whoever dies between the copy and the end leaves both, under one id.
func TestDeathBetweenACopyAndTheEnd(t *testing.T) {
	t.Parallel()
	for kind, settle := range map[string]func(d *delivery) error{
		"Ack": func(d *delivery) error { return d.Ack(d.source.lane.sub.closing, []provider.Job{aJob("next", "next")}) },
		"Retry": func(d *delivery) error {
			return d.Retry(d.source.lane.sub.closing, provider.Again{Why: provider.SnoozedAgain})
		},
		"Release": func(d *delivery) error { return d.Release(d.source.lane.sub.closing) },
		"DeadLetter": func(d *delivery) error {
			return d.DeadLetter(d.source.lane.sub.closing, provider.Failure{Class: provider.ClassPermanent})
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for i := range often(1, 50) {
				b := sharedBroker(t)
				heir, _ := b.open()
				dying := b.dying("carried")
				publish(t, heir, aJob(fmt.Sprint("job-", i), "work"))
				d := receive(t, subscribe(t, dying, options(1, "work")), 1)[0]
				var lost *provider.LostError
				if err := settle(d); !errors.As(err, &lost) || lost.Stored != provider.OutcomeStored {
					t.Fatalf("%s: %v; want a *LostError that says that the copy is stored", kind, err)
				}
				sub := subscribe(t, heir, options(2, "work", "next"))
				copies := 2
				if kind == "DeadLetter" {
					copies = 1
					letters, _, err := heir.provider.Dead.List(t.Context(), provider.DeadFilter{}, "")
					if err != nil || len(letters) != 1 {
						t.Errorf("%d dead letters, %v; want 1", len(letters), err)
					}
				}
				ack(t, receive(t, sub, copies)...)
			}
		})
	}
}

// dying opens a store whose process is dead as soon as it comes to a point.
func (b *broker) dying(point string) *store {
	var s *store
	b.in.hook = func(at string) {
		if at == point {
			s.die()
		}
	}
	s, _ = b.open()
	return s
}

// A replay that is cut off when the copy is stored leaves both, and the letter can be
// replayed or discarded again.
func TestDeathBetweenAReplayAndItsEnd(t *testing.T) {
	t.Parallel()
	for range often(1, 50) {
		b := sharedBroker(t)
		heir, _ := b.open()
		publish(t, heir, aJob("job", "work"))
		sub := subscribe(t, heir, options(2, "work"))
		if err := receive(t, sub, 1)[0].DeadLetter(t.Context(), provider.Failure{Class: provider.ClassPermanent}); err != nil {
			t.Fatal(err)
		}
		list := func() []provider.DeadLetter {
			letters, _, err := heir.provider.Dead.List(t.Context(), provider.DeadFilter{}, "")
			if err != nil || len(letters) != 1 {
				t.Fatalf("%d dead letters, %v; want 1", len(letters), err)
			}
			return letters
		}
		address := list()[0].Address
		if _, err := b.dying("replayed").provider.Dead.Replay(t.Context(), address); err == nil {
			t.Error("a replay whose process died has no error")
		}
		if d := receive(t, sub, 1)[0]; d.job.ID != "job" || d.job.Counters.Replays != 1 {
			t.Errorf("%s came, with %+v; want the replayed job", d.job.ID, d.job.Counters)
		} else {
			ack(t, d)
		}
		if again := list()[0].Address; again != address {
			t.Errorf("the letter is now at %s, and was at %s", again, address)
		}
		stored, err := heir.provider.Dead.Discard(t.Context(), address)
		if err != nil || stored[0].Outcome != provider.OutcomeStored {
			t.Errorf("discard: %+v, %v", stored, err)
		}
	}
}

// Whoever may not write learns why, and not only that it is not known.
func TestAUserWhoMayNotPublishIsTold(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	user := "u" + b.vhost
	ask(t, http.MethodPut, b.server, "users/"+user, `{"password":"p","tags":""}`)
	t.Cleanup(func() { ask(t, http.MethodDelete, b.server, "users/"+user, "") })
	ask(t, http.MethodPut, b.server, "permissions/"+b.vhost+"/"+user, `{"configure":".*","write":"^backstage","read":".*"}`)
	b.cfg.URL = strings.Replace(b.cfg.URL, "guest:guest", user+":p", 1)
	s, _ := b.open()
	stored := s.Publish(t.Context(), someJobs(1, "work"), provider.PublishOptions{})[0]
	if stored.Outcome == provider.OutcomeStored || stored.Err == nil || !strings.Contains(stored.Err.Error(), "amq.default") {
		t.Errorf("a job of a user who may not write to the default exchange: %s, %v", stored.Outcome, stored.Err)
	}
	b.cfg.URL = strings.Replace(b.cfg.URL, ":p@", ":wrong@", 1)
	if _, err := Open(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), "password") {
		t.Errorf("a wrong password: %v", err)
	}
}

// Whoever closes in good order gives back what had only been sent to it, and nobody
// counts that as a crash.
func TestWhatWasNotReceivedIsGivenBackUncounted(t *testing.T) {
	t.Parallel()
	s, _ := sharedBroker(t).open()
	const jobs = 20
	publish(t, s, someJobs(jobs, "work")...)
	sub := subscribe(t, s, options(jobs, "work"))
	ack(t, receive(t, sub, 1)...)
	until(t, "all have arrived", func() bool { return s.ahead("work") == jobs-1 })
	if err := sub.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	rest := receive(t, subscribe(t, s, options(jobs, "work")), jobs-1)
	for _, d := range rest {
		if d.job.Counters.Crashes != 0 {
			t.Errorf("%s: %+v; want no crash", d.job.ID, d.job.Counters)
		}
	}
	ack(t, rest...)
	if there, n, err := s.admin.exists(t.Context(), s.names.jobs("work")); !there || n != 0 || err != nil {
		t.Errorf("%d jobs are left, %v", n, err)
	}
}
