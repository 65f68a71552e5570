package redisstreams

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/internal/brokers"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// TestWhatVanishesUnderARunningWorker takes away what a worker stands on. It makes the
// groups anew, says so, and what was finished before does not run again.
func TestWhatVanishesUnderARunningWorker(t *testing.T) {
	for name, take := range map[string]func(c *redis.Client, stream string) error{
		"everything": func(c *redis.Client, _ string) error { return c.FlushAll(t.Context()).Err() },
		"the stream": func(c *redis.Client, stream string) error { return c.Del(t.Context(), stream).Err() },
		"the group":  func(c *redis.Client, stream string) error { return c.XGroupDestroy(t.Context(), stream, group).Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := brokers.RequireRedis(t, brokers.RedisOptions{})
			th := theatreOn(t, server.Addr())
			th.starts(backstage.WorkerConfig{Concurrency: 10, Lease: 2 * time.Second})
			ids := th.enqueue(100)
			until(t, "all jobs are done", func() bool { return th.done(ids) })
			if err := take(admin(t, server.Addr()), th.store.keys.queue(scope{}, "q").stream); err != nil {
				t.Fatal(err)
			}
			th.resume()
			until(t, "the new group is reported", func() bool { return th.seen.has(provider.GroupRecreated) })
			until(t, "the queue is on the list", func() bool {
				queues, err := th.store.provider.Stats.Queues(t.Context())
				return err == nil && fmt.Sprint(queues) == "[other q]"
			})
			more := th.enqueue(50)
			until(t, "what comes later is done, too", func() bool { return th.done(more) })
			th.once(append(ids, more...))
			th.spotless()
		})
	}
}

// TestJobsThatRunWhileTheirGroupVanishes are in the stream and not settled, so a new
// group delivers them again, as if for the first time: that counts no crash. What the
// runs of the old group say is refused, though entry, worker and count are the same.
func TestJobsThatRunWhileTheirGroupVanishes(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	s.stores(t, jobs(3, "")...)
	sub := s.worker(t, time.Minute, "q")
	old := sub.takes(t, 3)
	ack(t, old[0])
	stream := s.keys.queue(scope{}, "q").stream
	if err := s.admin(t).XGroupDestroy(t.Context(), stream, group).Err(); err != nil {
		t.Fatal(err)
	}
	var lost *provider.LostError
	if err := old[1].Ack(t.Context(), nil); !errors.As(err, &lost) || lost.Stored != provider.OutcomeRefused {
		t.Errorf("ack of a run whose group is gone: %v; want it lost", err)
	}
	fresh := sub.takes(t, 2)
	for _, d := range fresh {
		if n := d.Job().Counters.Crashes; n != 0 {
			t.Errorf("%s counts %d crashes", d.Job().ID, n)
		}
		if d.(*delivery).deliveries != 1 {
			t.Errorf("%s was delivered %d times in the new group", d.Job().ID, d.(*delivery).deliveries)
		}
	}
	select {
	case <-old[2].Lost():
	default:
		t.Errorf("a run whose job came again to the same worker is not lost")
	}
	if err := old[2].Ack(t.Context(), nil); !errors.As(err, &lost) {
		t.Errorf("ack of a run of the old group: %v; want it lost", err)
	}
	if err := sub.Extend(t.Context(), old[2:])[0]; !errors.Is(err, provider.ErrLeaseLost) {
		t.Errorf("heartbeat of a run of the old group: %v; want it lost", err)
	}
	ack(t, fresh...)
}

// TestGhosts deletes entries that a dead worker has. They are acknowledged and
// reported, however many there are, and those behind them are taken over.
func TestGhosts(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	events := s.observe(t)
	s.stores(t, jobs(60, "")...)
	dead := s.worker(t, time.Second, "q").takes(t, 60)
	stream := s.keys.queue(scope{}, "q").stream
	var ids []string
	for _, d := range dead[:50] {
		ids = append(ids, d.(*delivery).id)
	}
	operator := s.admin(t)
	if err := operator.XDel(t.Context(), stream, ids...).Err(); err != nil {
		t.Fatal(err)
	}
	heir := s.worker(t, time.Minute, "q")
	got := heir.takes(t, 10)
	for _, d := range got {
		if n := d.Job().Counters.Crashes; n != 1 {
			t.Errorf("%s counts %d crashes; want 1", d.Job().ID, n)
		}
	}
	ack(t, got...)
	until(t, "all ghosts are reported", func() bool {
		heir.gets(t, 50*time.Millisecond, 1)
		return events.count(provider.Ghost) == 50
	})
	if pending, err := operator.XPending(t.Context(), stream, group).Result(); err != nil || pending.Count != 0 {
		t.Errorf("pending: %+v, %v; want nothing", pending, err)
	}
}

// TestAnEntryThatIsDeletedWhileItRuns ends the run's lease, and its settlement is
// accepted: the job is done.
func TestAnEntryThatIsDeletedWhileItRuns(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	s.stores(t, jobs(2, "")...)
	sub := s.worker(t, time.Minute, "q")
	runs := sub.takes(t, 2)
	stream := s.keys.queue(scope{}, "q").stream
	if err := s.admin(t).XDel(t.Context(), stream, runs[0].(*delivery).id, runs[1].(*delivery).id).Err(); err != nil {
		t.Fatal(err)
	}
	if err := runs[0].Ack(t.Context(), nil); err != nil {
		t.Errorf("ack: %v", err)
	}
	if err := sub.Extend(t.Context(), runs[1:])[0]; !errors.Is(err, provider.ErrLeaseLost) {
		t.Errorf("heartbeat: %v; want that the job is gone", err)
	}
}

// TestGarbage writes into the stream what is no job of ours. It is dead-lettered as
// bytes and reported, and what is behind it goes on.
func TestGarbage(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	events := s.observe(t)
	sub := s.worker(t, time.Minute, "q")
	stream := s.keys.queue(scope{}, "q").stream
	operator := s.admin(t)
	for _, fields := range [][]any{
		{"temperature", "21", "unit", "°C"},
		{field, "\xff\x00 not a record"},
		{field, ""},
		{"other", "x", field, "also not"},
	} {
		if err := operator.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, Values: fields}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	s.stores(t, job("ours"))
	if d := sub.takes(t, 1)[0]; d.Job().ID != "ours" {
		t.Errorf("%s was delivered", d.Job().ID)
	} else {
		ack(t, d)
	}
	letters, _, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{Queue: "q"}, "")
	if err != nil || len(letters) != 4 {
		t.Fatalf("%d letters, %v; want 4", len(letters), err)
	}
	want := []string{"also not", "", "\xff\x00 not a record", "\"temperature\": \"21\"\n\"unit\": \"°C\"\n"}
	for i, l := range letters {
		if string(l.Raw) != want[i] || l.Failure.Class != provider.ClassNoRecord {
			t.Errorf("letter %d: %q of class %q; want %q", i, l.Raw, l.Failure.Class, want[i])
		}
	}
	if r, err := s.provider.Dead.Replay(t.Context(), letters[0].Address); err != nil || r[0].Outcome != provider.OutcomeRefused || !errors.Is(r[0].Err, provider.ErrNoRecord) {
		t.Errorf("replay of bytes: %+v, %v; want it refused with ErrNoRecord", r, err)
	}
	if r, err := s.provider.Dead.Discard(t.Context(), letters[0].Address); err != nil || r[0].Outcome != provider.OutcomeStored {
		t.Errorf("discard of bytes: %+v, %v", r, err)
	}
	if n := events.count(provider.ForeignRecord); n != 4 {
		t.Errorf("%d events of bytes that are no record; want 4", n)
	}
	if n := operator.XLen(t.Context(), stream).Val(); n != 0 {
		t.Errorf("%d entries are left in the stream", n)
	}
}

// TestGarbageAmongHeldJobs is put away where due jobs go, and stops no promoter.
func TestGarbageAmongHeldJobs(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	events := s.observe(t)
	lent, _ := s.provider.Lend("scope")
	for _, held := range []provider.Delays{s.provider.Delays, lent} {
		for _, r := range held.Hold(t.Context(), []provider.Job{job("bytes"), job("gone"), job("fine")}) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	operator, bytes := s.admin(t), job("bytes")
	for _, of := range []scope{{}, {lent: true, name: "scope"}} {
		bodies := s.keys.queue(of, "q").bodies
		if err := operator.HSet(t.Context(), bodies, "bytes", stampOf(&bytes)+" 0 4 \xff\xfe\xfd\xfc").Err(); err != nil {
			t.Fatal(err)
		}
		if err := operator.HDel(t.Context(), bodies, "gone").Err(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	published := make(chan string, 10)
	go func() { _ = s.provider.Delays.Promote(ctx, nil) }()
	go func() {
		_ = lent.Promote(ctx, func(_ context.Context, list []provider.Job) []provider.Stored {
			stored := make([]provider.Stored, len(list))
			for i, j := range list {
				published <- j.ID
				stored[i] = provider.Stored{ID: j.ID, Outcome: provider.OutcomeStored}
			}
			return stored
		})
	}()
	d := s.worker(t, time.Minute, "q").takes(t, 1)[0]
	if d.Job().ID != "fine" {
		t.Errorf("%s was delivered", d.Job().ID)
	}
	ack(t, d)
	if id := <-published; id != "fine" {
		t.Errorf("%s was published", id)
	}
	until(t, "bytes are dead-lettered and ghosts are reported", func() bool {
		letters, _, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{Class: provider.ClassNoRecord}, "")
		return err == nil && len(letters) == 2 && events.count(provider.Ghost) == 2 && events.count(provider.ForeignRecord) == 2
	})
	for _, held := range []provider.Delays{s.provider.Delays, lent} {
		n, err := held.Held(t.Context(), "q")
		if count, _ := n.Get(); err != nil || count != 0 {
			t.Errorf("%v jobs are held, %v; want none", n, err)
		}
	}
}

// TestConsumersOfDeadWorkers are removed when they have nothing, and not before.
func TestConsumersOfDeadWorkers(t *testing.T) {
	t.Parallel()
	s := openHooked(t, Config{URL: "redis://" + brokers.SharedRedis(t)}, internals{silent: 10 * time.Millisecond})
	s.stores(t, job("a"))
	busy := s.worker(t, time.Minute, "q")
	busy.takes(t, 1)
	idle := s.worker(t, time.Minute, "q")
	idle.gets(t, 20*time.Millisecond, 1)
	stream := s.keys.queue(scope{}, "q").stream
	operator := s.admin(t)
	names := func() string {
		var all []string
		for _, c := range operator.XInfoConsumers(t.Context(), stream, group).Val() {
			all = append(all, c.Name)
		}
		return strings.Join(all, " ")
	}
	for _, sub := range []*subscription{busy, idle} {
		if err := sub.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if got := names(); got != busy.consumer {
		t.Errorf("consumers after both workers have said goodbye: %q; want the one that has a job, %q", got, busy.consumer)
	}
	// One that died without a word, and whose lease is over.
	gone := rand.Text() + "@1"
	if err := operator.XGroupCreateConsumer(t.Context(), stream, group, gone).Err(); err != nil {
		t.Fatal(err)
	}
	heir := s.worker(t, time.Minute, "q")
	until(t, "the dead one is gone", func() bool {
		heir.gets(t, 100*time.Millisecond, 1)
		return !strings.Contains(names(), gone)
	})
	if got := names(); !strings.Contains(got, busy.consumer) {
		t.Errorf("consumers: %q; want one that has a job to be kept", got)
	}
}
