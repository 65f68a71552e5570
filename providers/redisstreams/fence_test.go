package redisstreams

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/runtime/provider"
)

// TestABeatBeforeALateSettlement is the worst order: a worker that was stopped for
// longer than its lease sends its heartbeat, and then settles. A heartbeat that only
// looked at names would take the job back.
func TestABeatBeforeALateSettlement(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	s.stores(t, job("a"))
	stopped := s.worker(t, 100*time.Millisecond, "q")
	old := stopped.takes(t, 1)[0]
	heir := s.worker(t, time.Minute, "q")
	fresh := heir.takes(t, 1)[0]
	if err := stopped.Extend(t.Context(), []provider.Delivery{old})[0]; !errors.Is(err, provider.ErrLeaseLost) {
		t.Errorf("late heartbeat: %v; want the lease lost", err)
	}
	if err := old.Ack(t.Context(), nil); !errors.Is(err, provider.ErrLeaseLost) {
		t.Errorf("late ack: %v; want the lease lost", err)
	}
	rows, err := s.admin(t).XPendingExt(t.Context(), &redis.XPendingExtArgs{
		Stream: s.keys.queue(scope{}, "q").stream, Group: group, Start: "-", End: "+", Count: 10}).Result()
	if err != nil || len(rows) != 1 || rows[0].Consumer != heir.consumer || rows[0].RetryCount != 2 {
		t.Errorf("pending: %+v, %v; want one entry of the heir, delivered twice", rows, err)
	}
	ack(t, fresh)
}

// TestTheFence walks through all that two runs can have in common but one thing, and
// settles by the older one.
func TestTheFence(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(d *delivery){
		"another entry":       func(d *delivery) { d.id = "1-1" },
		"an earlier delivery": func(d *delivery) { d.deliveries-- },
		"a later delivery":    func(d *delivery) { d.deliveries++ },
		"another generation":  func(d *delivery) { d.generation = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shared(t, Config{})
			s.stores(t, job("a"))
			sub := s.worker(t, time.Minute, "q")
			real := sub.takes(t, 1)[0].(*delivery)
			for _, kind := range []ending{endAck, endRetry, endDead, endRelease} {
				body, _ := provider.Marshal(&real.job)
				stale := &delivery{lane: real.lane, id: real.id, deliveries: real.deliveries, generation: real.generation, job: real.job}
				change(stale)
				err := stale.settle(t.Context(), &settlement{kind: kind, body: body})
				var lost *provider.LostError
				if !errors.As(err, &lost) || lost.Stored != provider.OutcomeRefused {
					t.Errorf("settlement %d of %s: %v; want it lost, and nothing stored", kind, name, err)
				}
				beat := &delivery{lane: real.lane, id: stale.id, deliveries: stale.deliveries, generation: stale.generation}
				if err := sub.Extend(t.Context(), []provider.Delivery{beat})[0]; !errors.Is(err, provider.ErrLeaseLost) {
					t.Errorf("heartbeat of %s: %v; want the lease lost", name, err)
				}
			}
			stats, err := s.provider.Stats.Queue(t.Context(), "q")
			if err != nil || stats.InFlight != provider.Measured[int64](1) || stats.Depth != provider.Measured[int64](0) ||
				stats.Dead != provider.Measured[int64](0) || stats.Held != provider.Measured[int64](0) {
				t.Errorf("afterwards: %+v, %v; want the real run and nothing else", stats, err)
			}
			ack(t, real)
		})
	}
}

// TestWhatRedisForgot is a server that died, or failed over, and is back without the
// last second: it gives out again what is running. Nothing but the consumer tells the
// two runs apart.
func TestWhatRedisForgot(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	s.stores(t, job("a"))
	old := s.worker(t, time.Minute, "q").takes(t, 1)[0].(*delivery)
	stream, operator := s.keys.queue(scope{}, "q").stream, s.admin(t)
	if err := errors.Join(operator.XAck(t.Context(), stream, group, old.id).Err(),
		operator.XGroupSetID(t.Context(), stream, group, "0").Err()); err != nil {
		t.Fatal(err)
	}
	heir := s.worker(t, time.Minute, "q")
	fresh := heir.takes(t, 1)[0].(*delivery)
	if fresh.id != old.id || fresh.deliveries != old.deliveries {
		t.Fatalf("the second run is %s for the %d. time; want %s for the %d.", fresh.id, fresh.deliveries, old.id, old.deliveries)
	}
	if err := old.Ack(t.Context(), nil); !errors.Is(err, provider.ErrLeaseLost) {
		t.Errorf("ack of the run that was forgotten: %v; want the lease lost", err)
	}
	if err := heir.Extend(t.Context(), []provider.Delivery{fresh})[0]; err != nil {
		t.Errorf("heartbeat of the second run: %v", err)
	}
	ack(t, fresh)
	empty(t, s, "q")
}

// TestAnIDThatIsGivenTwice is the same with a clock that is behind: the new master gives
// an entry that it has forgotten to another job, which nobody has read yet.
func TestAnIDThatIsGivenTwice(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	s.stores(t, job("a"))
	old := s.worker(t, time.Minute, "q").takes(t, 1)[0].(*delivery)
	stream, operator := s.keys.queue(scope{}, "q").stream, s.admin(t)
	other := job("b")
	body, _ := provider.Marshal(&other)
	if err := errors.Join(operator.XAck(t.Context(), stream, group, old.id).Err(),
		operator.XDel(t.Context(), stream, old.id).Err(),
		operator.Do(t.Context(), "XSETID", stream, "0-1").Err(),
		operator.XGroupSetID(t.Context(), stream, group, "0").Err(),
		operator.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, ID: old.id, Values: []any{field, body}}).Err()); err != nil {
		t.Fatal(err)
	}
	if err := old.Ack(t.Context(), nil); !errors.Is(err, provider.ErrLeaseLost) {
		t.Errorf("ack of the run that was forgotten: %v; want the lease lost", err)
	}
	fresh := s.worker(t, time.Minute, "q").takes(t, 1)[0]
	if fresh.Job().ID != "b" {
		t.Errorf("%s was delivered; want b", fresh.Job().ID)
	}
	ack(t, fresh)
}

// TestAGroupMadeAnewByHand gives out again what is running, to a worker that has been
// connected all the time.
func TestAGroupMadeAnewByHand(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	heir := s.worker(t, time.Minute, "q")
	first := s.worker(t, time.Minute, "q")
	heir.gets(t, 20*time.Millisecond, 1)
	s.stores(t, job("a"))
	old := first.takes(t, 1)[0].(*delivery)
	stream, operator := s.keys.queue(scope{}, "q").stream, s.admin(t)
	if err := errors.Join(operator.XGroupDestroy(t.Context(), stream, group).Err(),
		operator.XGroupCreate(t.Context(), stream, group, "0").Err()); err != nil {
		t.Fatal(err)
	}
	fresh := heir.takes(t, 1)[0].(*delivery)
	if err := old.Ack(t.Context(), nil); !errors.Is(err, provider.ErrLeaseLost) {
		t.Errorf("ack of the run of the old group: %v; want the lease lost", err)
	}
	ack(t, fresh)
	empty(t, s, "q")
}

// TestDeliveriesOnlyGrow releases a job again and again to the same worker: no two runs
// may look alike, and none counts.
func TestDeliveriesOnlyGrow(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	j := job("a")
	j.Counters.Crashes = 2
	s.stores(t, j)
	sub := s.worker(t, time.Minute, "q")
	for n := int64(1); n <= 4; n++ {
		d := sub.takes(t, 1)[0].(*delivery)
		if d.deliveries != n || d.job.Counters.Crashes != 2 {
			t.Errorf("run %d: delivery %d with %d crashes; want delivery %d with 2", n, d.deliveries, d.job.Counters.Crashes, n)
		}
		if err := d.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	dies := s.worker(t, 100*time.Millisecond, "q")
	dies.takes(t, 1)
	d := sub.takes(t, 1)[0].(*delivery)
	if d.deliveries != 6 || d.job.Counters.Crashes != 3 {
		t.Errorf("after four releases and a crash: delivery %d with %d crashes; want 6 with 3", d.deliveries, d.job.Counters.Crashes)
	}
	ack(t, d)
	if left := s.admin(t).Exists(t.Context(), s.keys.group("q").released).Val(); left != 0 {
		t.Errorf("the counts of a job that is done are still there")
	}
}

// TestReleasedJobsComeFirst hands a released job to the next worker before what waits.
func TestReleasedJobsComeFirst(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	s.stores(t, jobs(20, "")...)
	sub := s.worker(t, time.Minute, "q")
	first := sub.takes(t, 1)[0]
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	stats, err := s.provider.Stats.Queue(t.Context(), "q")
	if err != nil || stats.Depth != provider.Measured[int64](20) || stats.InFlight != provider.Measured[int64](0) {
		t.Errorf("a released job waits again: %+v, %v; want depth 20", stats, err)
	}
	if err := sub.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := s.worker(t, time.Minute, "q").takes(t, 1)[0]; d.Job().ID != first.Job().ID {
		t.Errorf("%s came first; want the released %s", d.Job().ID, first.Job().ID)
	}
}

// TestManySettlementsOfAMixedFlush settles hundreds of runs at once in all ways, some
// of which are stale.
func TestManySettlementsOfAMixedFlush(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	const n = 600
	for i := range 6 {
		s.stores(t, jobs(n/6, strconv.Itoa(i)+".", onQueue([]string{"q", "r"}[i%2]))...)
	}
	sub := s.worker(t, time.Minute, "q", "r")
	runs := sub.takes(t, n)
	errs := make(chan error, n)
	stale := 0
	for i, d := range runs {
		settle := func() error { return d.Ack(t.Context(), nil) }
		switch i % 6 {
		case 1:
			settle = func() error { return d.Ack(t.Context(), jobs(2, "next", onQueue("s"))) }
		case 2:
			settle = func() error { return d.Retry(t.Context(), provider.Again{Why: provider.FailedAgain, After: time.Hour}) }
		case 3:
			settle = func() error { return d.DeadLetter(t.Context(), failure("permanent", "no")) }
		case 4:
			stale++
			d.(*delivery).deliveries++
		case 5:
			settle = func() error { return d.Release(t.Context()) }
		}
		go func() { errs <- settle() }()
	}
	lost := 0
	for range n {
		switch err := <-errs; {
		case errors.Is(err, provider.ErrLeaseLost):
			lost++
		case err != nil:
			t.Error(err)
		}
	}
	if lost != stale {
		t.Errorf("%d settlements were refused; want %d", lost, stale)
	}
	numbers := make(map[string]int64)
	for _, queue := range []string{"q", "r", "s"} {
		stats, err := s.provider.Stats.Queue(t.Context(), queue)
		if err != nil {
			t.Fatal(err)
		}
		for name, m := range map[string]provider.Measure[int64]{"depth": stats.Depth, "running": stats.InFlight, "held": stats.Held, "dead": stats.Dead} {
			value, _ := m.Get()
			if name == "depth" && queue == "s" {
				name = "next"
			}
			numbers[name] += value
		}
	}
	for name, want := range map[string]int64{"depth": n / 6, "running": n / 6, "held": n / 6, "dead": n / 6, "next": n / 3} {
		if numbers[name] != want {
			t.Errorf("%s: %d; want %d", name, numbers[name], want)
		}
	}
}

// TestWhatComesWhileAWorkerCloses goes to others, and counts as nothing.
func TestWhatComesWhileAWorkerCloses(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	for round := range 20 {
		closing := s.worker(t, time.Minute, "q")
		got := make(chan []provider.Delivery, 1)
		go func() {
			ds, _ := closing.Receive(t.Context(), []string{"q"}, 10)
			got <- ds
		}()
		published := make(chan bool)
		go func() {
			s.stores(t, job(strconv.Itoa(round)))
			close(published)
		}()
		if round%2 == 0 {
			<-published
		}
		if err := closing.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-published
		if ds := <-got; len(ds) > 0 {
			continue // it came before; nobody here settles it
		}
		heir := s.worker(t, time.Minute, "q")
		d := heir.takes(t, 1)[0]
		if d.Job().ID != strconv.Itoa(round) || d.Job().Counters.Crashes != 0 {
			t.Errorf("round %d: %s with %d crashes", round, d.Job().ID, d.Job().Counters.Crashes)
		}
		ack(t, d)
		if err := heir.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
