package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// TestResultCodes holds the table to what must be true of it: the driver's error is
// in the text, with what to do, and only a failing disk leaves a commit in doubt.
func TestResultCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code            int
		problem         string
		file, final, in bool // concerns all, will not pass, in doubt when committing
	}{
		{3, "denies access", true, true, false},
		{5, "write lock", true, false, false},
		{6, "a lock", true, false, false},
		{7, "memory ran out", true, false, false},
		{8, "cannot be written", true, false, false},
		{8 | 4<<8, "moved or deleted", true, true, false},
		{8 | 6<<8, "folder cannot be written", true, false, false},
		{8 | 5<<8, "cannot be written", true, false, false}, // an extended code that is not in the table
		{10, "disk failed", true, false, true},
		{10 | 4<<8, "disk failed", true, false, true}, // fsync
		{10 | 15<<8, "no locks", true, true, false},
		{10 | 18<<8, "cannot share memory", true, true, false},
		{10 | 20<<8, "no locks", true, true, false},
		{11, "damaged", true, true, false},
		{11 | 1<<8, "damaged", true, true, false},
		{13, "disk is full", true, false, false},
		{14, "cannot be opened", true, false, false},
		{15, "locks of the file system", true, false, false},
		{18, "larger than the file can store", false, false, false},
		{19, "statement failed", false, false, false},
		{22, "no large files", true, true, false},
		{26, "not a SQLite file", true, true, false},
	} {
		t.Run(fmt.Sprint(c.code), func(t *testing.T) {
			known := troubleOf(c.code)
			err := error(&Error{Path: "/x", Code: c.code, Problem: known.problem, Remedy: known.remedy, Err: errors.New("driver"), blame: known.blame, final: known.final, doubtful: known.doubtful})
			if text := err.Error(); !strings.Contains(text, c.problem) || !strings.Contains(text, "driver") || known.remedy == "" {
				t.Errorf("the text is %q; want it to say %q, and what to do", text, c.problem)
			}
			if concernsFile(err) != c.file || final(err) != c.final || doubtful(err) != c.in {
				t.Errorf("concerns all %v, final %v, in doubt %v; want %v, %v, %v", concernsFile(err), final(err), doubtful(err), c.file, c.final, c.in)
			}
			if primary(err) != c.code&0xff {
				t.Errorf("primary code %d; want %d", primary(err), c.code&0xff)
			}
		})
	}
}

// TestOnlyACommitLeavesDoubt has the disk fail in a statement and in a commit, of which
// only the latter may be in the file all the same.
func TestOnlyACommitLeavesDoubt(t *testing.T) {
	t.Parallel()
	for _, code := range []int{codeIO | 4<<8, codeFull, codeBusy} {
		statement := error(&Error{Path: "/x", Code: code, Err: errors.New("driver")})
		if err := fault("/x", statement); doubtful(err) {
			t.Errorf("code %d in a statement leaves doubt", code)
		}
		err := commitFault("/x", fault("/x", statement))
		if doubtful(err) != (primary(err) == codeIO) || doubtful(statement) {
			t.Errorf("code %d in a commit: in doubt %v, and the statement's error %v", code, doubtful(err), doubtful(statement))
		}
	}
}

func TestFullDiskRefusesAndWorksOff(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Config{}, internals{maxPages: 60})
	events := observe(s)
	big := func(j *provider.Job) { j.Payload = make([]byte, 3000) }
	var stored []string
	var refused provider.Stored
	for i := range 200 {
		r := s.Publish(t.Context(), []provider.Job{job(fmt.Sprint(i), big)}, provider.PublishOptions{})[0]
		if r.Outcome != provider.OutcomeStored {
			refused = r
			break
		}
		stored = append(stored, r.ID)
	}
	if refused.Outcome != provider.OutcomeRefused || primary(refused.Err) != codeFull {
		t.Fatalf("with a full disk: %v, %v; want refused with code 13", refused.Outcome, refused.Err)
	}
	if err := s.provider.Health(t.Context()); primary(err) != codeFull {
		t.Errorf("health: %v; want that the disk is full", err)
	}
	sub := subscribe(t, s)
	got := mustReceive(t, sub, 2)
	if err := got[0].DeadLetter(t.Context(), provider.Failure{Class: provider.ClassPermanent}); err != nil {
		t.Errorf("dead-lettering on a full disk: %v", err)
	}
	ack(t, got[1])
	if kinds := events.kinds(); len(kinds) != 1 || kinds[0] != provider.Blocked {
		t.Errorf("events: %v; want blocked", kinds)
	}
	ack(t, mustReceive(t, sub, len(stored)-2)...)
	nothing(t, sub)
	publish(t, s, job("after"))
	if err := s.provider.Health(t.Context()); err != nil {
		t.Errorf("health afterwards: %v", err)
	}
	if kinds := events.kinds(); len(kinds) != 2 || kinds[1] != provider.Unblocked {
		t.Errorf("events: %v; want blocked, unblocked", kinds)
	}
}

// TestFullDiskSparesSettlements has publishing calls and settlements in the same
// transactions.
func TestFullDiskSparesSettlements(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Config{}, internals{maxPages: 80})
	sub := subscribe(t, s)
	var small []provider.Job
	for i := range 100 {
		small = append(small, job(fmt.Sprint(i)))
	}
	publish(t, s, small...)
	got := mustReceive(t, sub, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			s.Publish(ctx, []provider.Job{job("big", onQueue("other"), func(j *provider.Job) { j.Payload = make([]byte, 30000) })}, provider.PublishOptions{})
		}
	}()
	waitFor(t, "the disk to be full", func() bool { return s.writer.block.cause() != nil })
	for _, d := range got {
		ack(t, d)
	}
	cancel()
	<-ended
	wantStats(t, s, "q", 0, 0, 0, 0)
}

func TestOneCallsErrorSparesTheOthers(t *testing.T) {
	t.Parallel()
	hold, entered := make(chan struct{}), make(chan struct{}, 1)
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Config{}, internals{hook: holdAt("applied", hold, entered)})
	go s.Publish(t.Context(), []provider.Job{job("first")}, provider.PublishOptions{})
	<-entered
	bad := make(chan error)
	go func() {
		bad <- s.do(t.Context(), func(t *transaction) error { t.exec("insert into scope (name) values (null)"); return nil })
	}()
	good := make(chan provider.Stored)
	go func() { good <- s.Publish(t.Context(), []provider.Job{job("good")}, provider.PublishOptions{})[0] }()
	waitFor(t, "both to wait", func() bool {
		s.writer.mu.Lock()
		defer s.writer.mu.Unlock()
		return len(s.writer.waiting) == 2
	})
	close(hold)
	if err := <-bad; primary(err) != 19 {
		t.Errorf("the bad call: %v; want a constraint", err)
	}
	if r := <-good; r.Outcome != provider.OutcomeStored {
		t.Errorf("the good call: %v, %v; want stored", r.Outcome, r.Err)
	}
	if seen := drain(t, s, "q", 3*time.Second); seen["first"] != 1 || seen["good"] != 1 {
		t.Errorf("stored: %v; want first and good, once", seen)
	}
	if err := s.provider.Health(t.Context()); err != nil {
		t.Errorf("health: %v", err)
	}
}

// holdAt makes a hook that waits at the first passage of a point.
func holdAt(point string, hold <-chan struct{}, entered chan<- struct{}) func(string) {
	armed := make(chan struct{}, 1)
	armed <- struct{}{}
	return func(at string) {
		if at != point {
			return
		}
		select {
		case <-armed:
			entered <- struct{}{}
			<-hold
		default:
		}
	}
}

func TestReadOnlyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openAt(t, path, Config{}, internals{})
	publish(t, s, job("a"))
	// Root may write to any file, so that only this shows it.
	r, err := open(path, Config{}, internals{params: "mode=ro"})
	if err == nil {
		defer r.close(context.Background())
		stored := r.Publish(t.Context(), []provider.Job{job("b")}, provider.PublishOptions{})[0]
		if stored.Outcome != provider.OutcomeRefused || primary(stored.Err) != codeReadOnly {
			t.Errorf("publishing: %v, %v; want refused with code 8", stored.Outcome, stored.Err)
		}
		if err := r.provider.Health(t.Context()); primary(err) != codeReadOnly {
			t.Errorf("health: %v; want code 8", err)
		}
		return
	}
	if primary(err) != codeReadOnly {
		t.Errorf("opening: %v; want code 8", err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	raw := func(t *testing.T, path, script string) {
		t.Helper()
		db, err := sql.Open("sqlite", dsn(path, internals{}))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(script); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		prepare func(t *testing.T, path string)
		says    string
	}{
		"newer": {func(t *testing.T, path string) {
			openAt(t, path, Config{}, internals{})
			raw(t, path, "pragma user_version = 99")
		}, "run a newer version of Backstage"},
		"of another program": {func(t *testing.T, path string) { raw(t, path, "create table x (y)") }, "belongs to another program"},
		"not SQLite": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("no database at all ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a SQLite file"},
		"damaged": {func(t *testing.T, path string) {
			s := openAt(t, path, Config{}, internals{})
			publish(t, s, job("a"))
			if err := s.close(t.Context()); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := 200; i < len(b); i++ {
				b[i] = 0xa5
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "jobs.db")
			c.prepare(t, path)
			p, err := Open(path, Config{})
			if err == nil {
				_ = p.Close(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("opening: %v; want %q", err, c.says)
			}
		})
	}
}

func TestDamageWhileOpenIsReported(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openAt(t, path, Config{}, internals{})
	for i := range 300 {
		publish(t, s, job(fmt.Sprint(i), func(j *provider.Job) { j.Payload = make([]byte, 2000) }))
	}
	if err := s.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	for page := int64(3); page < 100; page++ { // the header and the schema stay
		if _, err := f.WriteAt([]byte(strings.Repeat("\xa5", 4096)), page*4096+int64(4096*20)); err != nil {
			t.Fatal(err)
		}
	}
	_ = f.Close()
	s = openAt(t, path, Config{}, internals{})
	sub := subscribe(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for err = nil; err == nil; {
		_, err = sub.Receive(ctx, []string{"q"}, 100)
	}
	if primary(err) != codeCorrupt {
		t.Errorf("receiving: %v; want code 11", err)
	}
}

func TestWhereNoFileCanBe(t *testing.T) {
	t.Parallel()
	var setup *provider.SetupError
	for _, path := range []string{"", ":memory:", filepath.Join(t.TempDir(), "no", "such", "folder", "x.db"), t.TempDir()} {
		p, err := Open(path, Config{})
		if err == nil {
			_ = p.Close(t.Context())
			t.Errorf("%q was opened", path)
			continue
		}
		var own *Error
		if !errors.As(err, &setup) && !errors.As(err, &own) {
			t.Errorf("opening %q: %v (%T); want one that says what to do", path, err, err)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	var setup *provider.SetupError
	for name, cfg := range map[string]Config{
		"synchronous": {Synchronous: 7}, "lease": {PromotionLease: -1}, "dead": {MaxDead: -2}, "wait": {OpenWait: -1},
		"bound": {Bounds: map[string]int{"q": -1}}, "queue": {Bounds: map[string]int{"": 1}},
	} {
		if _, err := Open(filepath.Join(t.TempDir(), "x.db"), cfg); !errors.As(err, &setup) {
			t.Errorf("%s: %v; want a SetupError", name, err)
		}
	}
}

func TestForeignWriterIsWaitedFor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openAt(t, path, Config{}, internals{})
	events := observe(s)
	db, err := sql.Open("sqlite", dsn(path, internals{}))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "begin immediate"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan provider.Stored, 1)
	go func() { ended <- s.Publish(t.Context(), []provider.Job{job("a")}, provider.PublishOptions{})[0] }()
	waitFor(t, "the event", func() bool { return len(events.kinds()) == 1 })
	if _, err := conn.ExecContext(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	if r := <-ended; r.Outcome != provider.OutcomeStored {
		t.Errorf("publishing: %v, %v; want stored", r.Outcome, r.Err)
	}
	waitFor(t, "the second event", func() bool { return len(events.kinds()) == 2 })
	if kinds := events.kinds(); kinds[0] != provider.Blocked || kinds[1] != provider.Unblocked {
		t.Errorf("events: %v; want blocked, unblocked", kinds)
	}
}

func TestContextThatEndsDuringTheCommit(t *testing.T) {
	t.Parallel()
	hold, entered := make(chan struct{}), make(chan struct{}, 1)
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Config{}, internals{hook: holdAt("applied", hold, entered)})
	ctx, cancel := context.WithCancel(t.Context())
	unknown, refused := make(chan provider.Stored), make(chan provider.Stored)
	go func() { unknown <- s.Publish(ctx, []provider.Job{job("unknown")}, provider.PublishOptions{})[0] }()
	<-entered
	go func() { refused <- s.Publish(ctx, []provider.Job{job("refused")}, provider.PublishOptions{})[0] }()
	waitFor(t, "the second call", func() bool {
		s.writer.mu.Lock()
		defer s.writer.mu.Unlock()
		return len(s.writer.waiting) == 1
	})
	cancel()
	if r := <-unknown; r.Outcome != provider.OutcomeUnknown || !errors.Is(r.Err, context.Canceled) {
		t.Errorf("in the transaction: %v, %v; want unknown", r.Outcome, r.Err)
	}
	if r := <-refused; r.Outcome != provider.OutcomeRefused || !errors.Is(r.Err, context.Canceled) {
		t.Errorf("not in it: %v, %v; want refused", r.Outcome, r.Err)
	}
	close(hold)
	if seen := drain(t, s, "q", 3*time.Second); len(seen) != 1 || seen["unknown"] != 1 {
		t.Errorf("stored: %v; want the unknown one", seen)
	}
}

// TestReceiverThatLeftStartsNothing has the receiver's context end while the
// transaction that starts a job for it is under way.
func TestReceiverThatLeftStartsNothing(t *testing.T) {
	t.Parallel()
	for name, lapsed := range map[string]bool{"ready": false, "taken over": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "jobs.db")
			other := openAt(t, path, Config{}, internals{})
			publish(t, other, job("a"))
			want := int32(0)
			if lapsed {
				mustReceive(t, subscribeFor(t, other, shortestLease, "q"), 1)
				waitForLapse(t, other)
				want = 1
			}
			hold, entered := make(chan struct{}), make(chan struct{}, 1)
			armed := false
			hook := holdAt("applied", hold, entered)
			s := openAt(t, path, Config{}, internals{hook: func(p string) {
				if armed {
					hook(p)
				}
			}})
			sub := subscribe(t, s)
			armed = true
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				got, err := sub.Receive(ctx, []string{"q"}, 1)
				if len(got) > 0 {
					err = errors.New("a delivery")
				}
				ended <- err
			}()
			<-entered
			cancel()
			began := time.Now()
			if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(began) > time.Second {
				t.Errorf("receiving: %v after %v; want it to end within a second", err, time.Since(began))
			}
			close(hold)
			got := mustReceive(t, subscribe(t, other), 1)[0]
			if n := got.Job().Counters.Crashes; n != want {
				t.Errorf("%d crashes; want %d", n, want)
			}
		})
	}
}
