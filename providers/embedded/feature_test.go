package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
)

func TestCallsShareTransactions(t *testing.T) {
	t.Parallel()
	var commits atomic.Int64
	hold, entered := make(chan struct{}), make(chan struct{}, 1)
	first := holdAt("applied", hold, entered)
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Config{}, internals{hook: func(p string) {
		first(p)
		if p == "committed" {
			commits.Add(1)
		}
	}})
	var wg sync.WaitGroup
	wg.Go(func() { publish(t, s, job("first")) })
	<-entered
	for i := range 100 {
		wg.Go(func() { publish(t, s, job(fmt.Sprint(i))) })
	}
	waitFor(t, "the others", func() bool {
		s.writer.mu.Lock()
		defer s.writer.mu.Unlock()
		return len(s.writer.waiting) == 100
	})
	close(hold)
	wg.Wait()
	if n := commits.Load(); n != 2 {
		t.Errorf("one call and then 100 took %d transactions; want 2", n)
	}
}

func TestBoundIsStoredAndHoldsClientsBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	bound := openAt(t, path, Config{Bounds: map[string]int{"q": 3}}, internals{})
	s := openAt(t, path, Config{}, internals{})
	publish(t, s, job("running"), job("held", delayed(time.Hour)))
	sub := subscribe(t, s)
	running := mustReceive(t, sub, 1)[0]

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	results := s.Publish(ctx, []provider.Job{job("third"), job("fourth"), job("elsewhere", onQueue("other"))}, provider.PublishOptions{})
	for i, want := range []provider.Outcome{provider.OutcomeStored, provider.OutcomeRefused, provider.OutcomeStored} {
		if results[i].Outcome != want {
			t.Errorf("%s: %v, %v; want %v", results[i].ID, results[i].Outcome, results[i].Err, want)
		}
	}
	if err := results[1].Err; !errors.Is(err, provider.ErrQueueFull) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("why refused: %v; want ErrQueueFull and the deadline", err)
	}

	// What was accepted before passes.
	if r := s.Publish(t.Context(), []provider.Job{job("due")}, provider.PublishOptions{Accepted: true})[0]; r.Outcome != provider.OutcomeStored {
		t.Errorf("an accepted job: %v, %v; want stored", r.Outcome, r.Err)
	}
	if err := running.Ack(t.Context(), []provider.Job{job("next")}); err != nil {
		t.Error(err)
	}

	// The call waits until there is room, made by another process.
	stored := make(chan provider.Stored)
	go func() {
		stored <- bound.Publish(t.Context(), []provider.Job{job("patient")}, provider.PublishOptions{})[0]
	}()
	ack(t, mustReceive(t, sub, 2)...)
	select {
	case r := <-stored:
		if r.Outcome != provider.OutcomeStored {
			t.Errorf("the patient job: %v, %v; want stored", r.Outcome, r.Err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the patient job was not stored, though there was room")
	}
	openAt(t, path, Config{Bounds: map[string]int{"q": 0}}, internals{})
	var many []provider.Job
	for i := range 20 {
		many = append(many, job(fmt.Sprint(i)))
	}
	publish(t, s, many...)
}

func TestBoundHoldsUnderLoad(t *testing.T) {
	t.Parallel()
	const bound, jobs = 10, 500
	s := openNew(t, Config{Bounds: map[string]int{"q": bound}})
	var wg sync.WaitGroup
	for p := range 8 {
		wg.Go(func() {
			for i := range jobs / 8 {
				publish(t, s, job(fmt.Sprintf("%d-%d", p, i)))
			}
		})
	}
	sub := subscribe(t, s)
	for done := 0; done < jobs/8*8; {
		got := receive(t, sub, 1, 5*time.Second)
		if len(got) == 0 {
			t.Fatalf("after %d jobs nothing came", done)
		}
		q, err := s.provider.Stats.Queue(t.Context(), "q")
		depth, _ := q.Depth.Get()
		running, _ := q.InFlight.Get()
		if err != nil || depth+running > bound {
			t.Fatalf("%d jobs wait and %d run, %v; want at most %d", depth, running, err, bound)
		}
		ack(t, got...)
		done += len(got)
	}
	wg.Wait()
}

func TestDeadLettersMayBeFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	openAt(t, path, Config{MaxDead: 2}, internals{}) // it binds all who open the file
	s := openAt(t, path, Config{}, internals{})
	publish(t, s, job("a"), job("b"), job("c"), job("d"))
	sub := subscribe(t, s)
	failure := provider.Failure{Class: provider.ClassPermanent}
	got := mustReceive(t, sub, 4)
	for i, d := range got[:3] {
		err := d.DeadLetter(t.Context(), failure)
		if full := errors.Is(err, provider.ErrDeadFull); full != (i == 2) || !full && err != nil {
			t.Errorf("dead-lettering %d: %v", i, err)
		}
	}
	wantStats(t, s, "q", 0, 2, 0, 2)
	letters, _, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{}, "")
	if err != nil || len(letters) != 2 {
		t.Fatalf("letters: %v, %v", letters, err)
	}
	if _, err := s.provider.Dead.Discard(t.Context(), letters[0].Address); err != nil {
		t.Fatal(err)
	}
	if err := got[2].DeadLetter(t.Context(), failure); err != nil {
		t.Errorf("dead-lettering again: %v; want that it works now", err)
	}
	wantStats(t, s, "q", 0, 1, 0, 2)
	openAt(t, path, Config{MaxDead: -1}, internals{})
	if err := got[3].DeadLetter(t.Context(), failure); err != nil {
		t.Errorf("dead-lettering without a limit: %v", err)
	}
}

func TestOtherProcessIsWokenUp(t *testing.T) {
	t.Parallel()
	for name, polling := range map[string]bool{"told": false, "polling": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "jobs.db")
			publisher := openAt(t, path, Config{}, internals{polling: polling})
			worker := openAt(t, path, Config{}, internals{polling: polling, lookEvery: time.Hour})
			sub := subscribe(t, worker)
			promoteWhile(t, worker.delays, nil)
			for i := range 10 {
				received := make(chan []provider.Delivery)
				go func() { received <- receive(t, sub, 1, time.Minute) }()
				publish(t, publisher, job(fmt.Sprint(i), delayed(time.Duration(i%2)*100*time.Millisecond)))
				got := <-received
				if len(got) != 1 {
					t.Fatalf("job %d did not wake the other process", i)
				}
				ack(t, got...)
			}
		})
	}
}

func TestOpeningsOfOneFileTakeTurns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	openings := []*store{openAt(t, path, Config{}, internals{}), openAt(t, path, Config{}, internals{})}
	counts := make([]atomic.Int64, 2)
	var wg sync.WaitGroup
	for i, s := range openings {
		for range 4 {
			wg.Go(func() {
				for counts[0].Load()+counts[1].Load() < 600 {
					if r := s.Publish(t.Context(), []provider.Job{job("x")}, provider.PublishOptions{})[0]; r.Outcome != provider.OutcomeStored {
						t.Errorf("publishing: %v, %v", r.Outcome, r.Err)
						return
					}
					counts[i].Add(1)
				}
			})
		}
	}
	wg.Wait()
	if a, b := counts[0].Load(), counts[1].Load(); max(a, b) > 4*min(a, b) {
		t.Errorf("one published %d jobs and the other %d; want about as many", a, b)
	}
}

func TestClosingOneOpeningKeepsTheOther(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openAt(t, path, Config{}, internals{})
	for i := range 20 {
		other := openAt(t, path, Config{}, internals{})
		publish(t, other, job(fmt.Sprint("other", i)))
		publish(t, s, job(fmt.Sprint("s", i)))
		if err := other.close(t.Context()); err != nil {
			t.Fatal(err)
		}
		publish(t, s, job(fmt.Sprint("after", i)))
	}
	if seen := drain(t, s, "q", 3*time.Second); len(seen) != 60 {
		t.Errorf("%d jobs are there; want 60", len(seen))
	}
	if err := integrity(path); err != nil {
		t.Error(err)
	}
}

func integrity(path string) error {
	db, err := sql.Open("sqlite", dsn(path, internals{}))
	if err != nil {
		return err
	}
	defer db.Close()
	var says string
	if err := db.QueryRow("pragma integrity_check").Scan(&says); err != nil || says != "ok" {
		return fmt.Errorf("integrity check: %s, %w", says, err)
	}
	return nil
}

func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openAt(t, path, Config{}, internals{})
	publish(t, s, job("running"))
	running := mustReceive(t, subscribe(t, s), 1)[0]
	publish(t, s, job("waiting"), job("held", delayed(time.Hour)), job("claimed", deduped("k", time.Hour)))
	copied := filepath.Join(t.TempDir(), "copy ?#%.db")
	if err := Backup(t.Context(), path, copied); err != nil {
		t.Fatal(err)
	}
	if err := Backup(t.Context(), path, copied); err == nil {
		t.Error("a copy was overwritten")
	}
	publish(t, s, job("later"))
	ack(t, running)

	restored := openAt(t, copied, Config{}, internals{})
	wantStats(t, restored, "q", 2, 1, 1, 0)
	waitForLapse(t, restored)
	crashes := map[string]int32{}
	for _, d := range receive(t, subscribe(t, restored), 4, time.Second) {
		crashes[d.Job().ID] = d.Job().Counters.Crashes
		ack(t, d)
	}
	if diff := cmp.Diff(map[string]int32{"running": 1, "waiting": 0, "claimed": 0}, crashes); diff != "" {
		t.Errorf("what runs again, with crashes (-want +got):\n%s", diff)
	}
	if r := restored.Publish(t.Context(), []provider.Job{job("other", deduped("k", time.Hour))}, provider.PublishOptions{})[0]; r.Holder != "claimed" {
		t.Errorf("the claim: %v, held by %q; want it kept", r.Outcome, r.Holder)
	}
	var mode int
	if _, err := restored.readRow(t.Context(), "pragma auto_vacuum", nil, &mode); err != nil || mode != 2 {
		t.Errorf("auto_vacuum of the copy is %d, %v; want 2", mode, err)
	}
}

func TestNumbersNeverFall(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	var shift atomic.Int64
	in := internals{now: func() int64 { return time.Now().UnixNano() - shift.Load() }}
	last := int64(0)
	for range 5 {
		s := openAt(t, path, Config{}, in)
		for range 3 {
			publish(t, s, job("a"))
			d := mustReceive(t, subscribe(t, s), 1)[0].(*delivery)
			if d.n <= last || d.run <= d.n {
				t.Errorf("job %d, run %d after %d; want them to rise", d.n, d.run, last)
			}
			last = d.run
			ack(t, d)
			shift.Add(int64(time.Hour)) // the clock is set back
		}
		if err := s.close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUnknownFieldsSurviveEveryRewrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openAt(t, path, Config{}, internals{})
	sub := subscribe(t, s)
	j := job("a")
	body, err := provider.Marshal(&j)
	if err != nil {
		t.Fatal(err)
	}
	extra := protowire.AppendString(protowire.AppendTag(nil, 5000, protowire.BytesType), "from the future")
	if err := putBytes(path, "q", append(body, extra...)); err != nil {
		t.Fatal(err)
	}
	promoteWhile(t, s.delays, nil)
	d := mustReceive(t, sub, 1)[0]
	for _, again := range []provider.Again{{Why: provider.FailedAgain}, {Why: provider.SnoozedAgain, After: 10 * time.Millisecond}} {
		if err := d.Retry(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		d = mustReceive(t, sub, 1)[0]
	}
	if err := d.DeadLetter(t.Context(), provider.Failure{Class: provider.ClassFailed}); err != nil {
		t.Fatal(err)
	}
	letters, _, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{}, "")
	if err != nil || len(letters) != 1 {
		t.Fatalf("letters: %v, %v", letters, err)
	}
	if _, err := s.provider.Dead.Replay(t.Context(), letters[0].Address); err != nil {
		t.Fatal(err)
	}
	again, err := provider.Marshal(mustReceive(t, sub, 1)[0].Job())
	if err != nil {
		t.Fatal(err)
	}
	if !contains(again, extra) {
		t.Error("the field of a newer version is gone")
	}
}

func contains(b, part []byte) bool {
	for i := range len(b) - len(part) + 1 {
		if string(b[i:i+len(part)]) == string(part) {
			return true
		}
	}
	return false
}

func TestHeldBytesThatAreNoRecord(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{})
	events := observe(s)
	held, _ := s.provider.Lend("b")
	if r := held.Hold(t.Context(), []provider.Job{job("a"), job("b")}); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	if err := s.do(t.Context(), func(t *transaction) error {
		t.exec("update job set body = x'00' where n = (select min(n) from job)")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	published := make(chan string, 10)
	promoteWhile(t, held, func(_ context.Context, jobs []provider.Job) []provider.Stored {
		var all []provider.Stored
		for _, j := range jobs {
			published <- j.ID
			all = append(all, provider.Stored{ID: j.ID, Outcome: provider.OutcomeStored})
		}
		return all
	})
	if id := <-published; id != "b" {
		t.Errorf("published %s; want b", id)
	}
	waitFor(t, "the event", func() bool { return len(events.kinds()) == 1 })
	letters, _, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{Class: provider.ClassNoRecord}, "")
	if err != nil || len(letters) != 1 || string(letters[0].Raw) != "\x00" || letters[0].Queue != "q" {
		t.Fatalf("letters: %+v, %v; want the bytes", letters, err)
	}
	if r, err := s.provider.Dead.Replay(t.Context(), letters[0].Address); err != nil || r[0].Outcome != provider.OutcomeRefused || !errors.Is(r[0].Err, provider.ErrNoRecord) {
		t.Errorf("replay of bytes: %+v, %v; want it refused with ErrNoRecord", r, err)
	}
	waitFor(t, "the other to be forgotten", func() bool {
		n, err := held.Held(t.Context(), "q")
		return err == nil && n.String() == "0"
	})
}

func TestLentJobsMayMoveToTheLendersQueues(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{})
	sub := subscribe(t, s)
	held, _ := s.provider.Lend("b")
	if r := held.Hold(t.Context(), []provider.Job{job("a", keyed("k")), job("b", keyed("k"))}); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	wantStats(t, s, "q", 0, 0, 0, 0)
	promoteWhile(t, held, nil)
	a := mustReceive(t, sub, 1)[0]
	wantStats(t, s, "q", 1, 1, 0, 0)
	nothing(t, sub)
	ack(t, a)
	ack(t, mustReceive(t, sub, 1)...)
	wantStats(t, s, "q", 0, 0, 0, 0)
}

func TestCancelledJobLetsItsKeyGoOn(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{})
	sub := subscribe(t, s)
	publish(t, s, job("a", keyed("k"), untilDone("d")), job("b", keyed("k")))
	a := mustReceive(t, sub, 1)[0]
	if err := a.Retry(t.Context(), provider.Again{Why: provider.ParkedAgain, After: time.Hour}); err != nil {
		t.Fatal(err)
	}
	nothing(t, sub)
	if cancelled, err := s.delays.Cancel(t.Context(), "a"); err != nil || len(cancelled) != 1 {
		t.Errorf("cancelling: %v, %v; want one job", cancelled, err)
	}
	if got := mustReceive(t, sub, 1); got[0].Job().ID != "b" {
		t.Errorf("received %v; want b", ids(got))
	}
	publish(t, s, job("c", untilDone("d")))
}

func TestPendingClaimMakesPublishWait(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{})
	claim := func(confirmed bool, d time.Duration) {
		t.Helper()
		if _, err := s.claims.Claim(t.Context(), []provider.Claim{{Key: "k", Owner: "other", For: d, Confirmed: confirmed}}); err != nil {
			t.Fatal(err)
		}
	}
	claim(false, time.Minute)
	// A machine that is busy may not have looked at the claim when the time is over.
	for patience := 100 * time.Millisecond; ; patience *= 4 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		r := s.Publish(ctx, []provider.Job{job("a", deduped("k", time.Hour))}, provider.PublishOptions{})[0]
		cancel()
		if errors.Is(r.Err, provider.ErrDedupePending) {
			break
		}
		if patience > 20*time.Second || r.Outcome != provider.OutcomeRefused && r.Outcome != provider.OutcomeUnknown {
			t.Fatalf("publishing: %v, %v; want ErrDedupePending", r.Outcome, r.Err)
		}
	}
	stored := make(chan provider.Stored)
	go func() {
		stored <- s.Publish(t.Context(), []provider.Job{job("a", deduped("k", time.Hour))}, provider.PublishOptions{})[0]
	}()
	claim(true, time.Minute)
	if r := <-stored; r.Outcome != provider.OutcomeDuplicate || r.Holder != "other" {
		t.Errorf("publishing: %v, held by %q; want a duplicate of other", r.Outcome, r.Holder)
	}
}

func TestExpiredClaimsAreRemoved(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{})
	var wanted []provider.Claim
	for i := range 1200 {
		wanted = append(wanted, provider.Claim{Key: fmt.Sprint(i), Owner: "a", For: time.Millisecond})
	}
	if _, err := s.claims.Claim(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the claims to be removed", func() bool {
		var n int
		_, err := s.readRow(t.Context(), "select count(*) from claim", nil, &n)
		return err == nil && n == 0
	})
}

func TestFileShrinksAfterABacklog(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{})
	const count = 12_000
	var jobs []provider.Job
	for i := range count {
		jobs = append(jobs, job(fmt.Sprint(i), func(j *provider.Job) { j.Payload = make([]byte, 2000) }))
	}
	publish(t, s, jobs...)
	pages := func() (n int) {
		if _, err := s.readRow(t.Context(), "pragma page_count", nil, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	full := pages()
	sub := subscribe(t, s)
	var wg sync.WaitGroup
	for done := 0; done < count; {
		got := receive(t, sub, 500, time.Minute)
		if len(got) == 0 {
			t.Fatalf("after %d nothing came", done)
		}
		for _, d := range got {
			wg.Go(func() { ack(t, d) })
		}
		done += len(got)
	}
	wg.Wait()
	waitFor(t, "pages to be given back", func() bool { return pages() < full*9/10 })
}

func TestPathsThatLookLikeParameters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?mode=ro&x=%41#frag.db")
	s := openAt(t, path, Config{}, internals{})
	publish(t, s, job("a"))
	found, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if base := filepath.Base(f); base[:len(filepath.Base(path))] != filepath.Base(path) {
			t.Errorf("there is a file %q", base)
		}
	}
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{})
	sub := subscribe(t, s)
	promoted, received := make(chan error, 1), make(chan error, 1)
	go func() { promoted <- s.delays.Promote(context.Background(), nil) }()
	go func() { _, err := sub.Receive(context.Background(), []string{"q"}, 1); received <- err }()
	for range 2 {
		if err := s.close(t.Context()); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
	for name, ended := range map[string]chan error{"Promote": promoted, "Receive": received} {
		if err := <-ended; !errors.Is(err, provider.ErrClosed) {
			t.Errorf("%s: %v; want ErrClosed", name, err)
		}
	}
	select {
	case <-s.writer.ended:
	default:
		t.Error("the writer still runs")
	}
}

func TestCloseEndsCallsThatWaitForRoom(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{Bounds: map[string]int{"q": 1}})
	publish(t, s, job("a"))
	refused := make(chan provider.Stored)
	go func() {
		refused <- s.Publish(context.Background(), []provider.Job{job("b")}, provider.PublishOptions{})[0]
	}()
	waitFor(t, "the call", func() bool {
		return s.calls.Inside() == 1
	})
	began := time.Now()
	if err := s.close(t.Context()); err != nil || time.Since(began) > 2*time.Second {
		t.Errorf("closing: %v after %v", err, time.Since(began))
	}
	if r := <-refused; r.Outcome != provider.OutcomeRefused || !errors.Is(r.Err, provider.ErrClosed) {
		t.Errorf("publishing: %v, %v; want refused because of ErrClosed", r.Outcome, r.Err)
	}
}

func TestDeadLettersUntilAFarTime(t *testing.T) {
	t.Parallel()
	s := openNew(t, Config{})
	publish(t, s, job("a"))
	if err := mustReceive(t, subscribe(t, s), 1)[0].DeadLetter(t.Context(), provider.Failure{Class: provider.ClassFailed}); err != nil {
		t.Fatal(err)
	}
	far := provider.DeadFilter{Since: time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), Until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	if list, _, err := s.provider.Dead.List(t.Context(), far, ""); err != nil || len(list) != 1 {
		t.Errorf("%d letters between far times, %v; want one", len(list), err)
	}
}
