package backstage_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
	"google.golang.org/protobuf/proto"
)

// TestInvalidJobs are refused with what is wrong with them, and nothing is sent of
// the batch they are in.
func TestInvalidJobs(t *testing.T) {
	keyed := task("keyed", func(t *backstage.Task[*text]) { t.Dedupe, t.DedupeFor = keyOf, time.Hour })
	ordered := task("ordered", func(t *backstage.Task[*text]) { t.OrderingKey = keyOf })
	for _, row := range []struct {
		name string
		job  backstage.Job
		want string
	}{
		{"zero Job", backstage.Job{}, "enqueue: not stored: the job is the zero Job"},
		{"zero Job with options", backstage.Job{}.With(backstage.In(time.Hour)), "the job is the zero Job"},
		{"nil payload", backstage.NewJob(task("a"), nil), ": not stored: the payload is nil"},
		{"not UTF-8", job(task("a"), "\xff"), ": not stored: payload field value is not valid UTF-8"},
		{"too large", job(task("a"), strings.Repeat("x", 2<<20)), ": not stored: payload has"},
		{"empty dedupe key", job(keyed, ""), `: not stored: dedupe: field "value" is empty; set it, or write {value?}`},
		{"empty ordering key", job(ordered, ""), `: not stored: ordering_key: field "value" is empty`},
		{"several things at once", job(keyed, "", backstage.In(-time.Second), backstage.WithID("id"), backstage.OnQueue(""), backstage.WithTimeout(-1)),
			`enqueue keyed id: not stored: dedupe: field "value" is empty; set it, or write {value?} in the template if an empty one is meant; ` +
				"In(-1s): a delay cannot be negative; OnQueue: must not be empty; WithTimeout(-1ns): must be positive"},
		{"negative delay", job(task("a"), "", backstage.In(-time.Second)), "In(-1s)"},
		{"a delay of centuries", job(task("a"), "", backstage.In(math.MaxInt64)), "In(2562047h"},
		{"a time in centuries", job(task("a"), "", backstage.At(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))), "At(9999"},
		{"empty id", job(task("a"), "", backstage.WithID("")), "WithID"},
		{"long id", job(task("a"), "", backstage.WithID(strings.Repeat("x", 201))), "WithID"},
		{"id that is no text", job(task("a"), "", backstage.WithID("\xff")), "WithID"},
		{"id with a space", job(task("a"), "", backstage.WithID("a b")), `WithID("a b"): it has a space`},
		{"id that cannot be printed", job(task("a"), "", backstage.WithID("a\u0000")), "cannot be printed"},
		{"queue with a space", job(task("a"), "", backstage.OnQueue("a b")), `OnQueue("a b"): it has a space`},
		{"queue that is not ASCII", job(task("a"), "", backstage.OnQueue("Kälte")), "not plain ASCII"},
		{"long queue", job(task("a"), "", backstage.OnQueue(strings.Repeat("x", 201))), "longer than 200 bytes"},
		{"empty queue", job(task("a"), "", backstage.OnQueue("")), "OnQueue"},
		{"empty header", job(task("a"), "", backstage.Header("", "v")), "Header"},
		{"header that is no text", job(task("a"), "", backstage.Header("k", "\xff")), "Header"},
		{"no attempts", job(task("a"), "", backstage.WithMaxAttempts(0)), "WithMaxAttempts(0)"},
		{"too many attempts", job(task("a"), "", backstage.WithMaxAttempts(math.MaxInt)), "WithMaxAttempts"},
		{"no timeout", job(task("a"), "", backstage.WithTimeout(0)), "WithTimeout(0s)"},
		{"no max age", job(task("a"), "", backstage.WithMaxAge(-1)), "WithMaxAge"},
		{"no expiry", job(task("a"), "", backstage.WithExpires(0)), "WithExpires"},
		{"no backoff", job(task("a"), "", backstage.WithBackoff(backstage.Backoff{})), "WithBackoff"},
		{"backoff that shrinks", job(task("a"), "", backstage.WithBackoff(backstage.Backoff{Base: 2, Cap: 1})), "WithBackoff"},
	} {
		inBubbleSub(t, row.name, func(r *rig) {
			r.hooks.publish = func([]provider.Job, provider.PublishOptions, func() []provider.Stored) []provider.Stored {
				r.Error("something was sent")
				return nil
			}
			fine := job(task("a"), "fine")
			receipts, err := r.client.Enqueue(r.Context(), fine, row.job, fine)
			if len(receipts) != 3 {
				r.Fatalf("%d receipts, want 3", len(receipts))
			}
			for i, receipt := range receipts {
				var why *backstage.EnqueueError
				if receipt.Outcome != backstage.Refused || !errors.As(receipt.Err, &why) || why.Outcome != backstage.Refused {
					r.Errorf("receipt %d: %+v, want refused, with an *EnqueueError", i, receipt)
				}
			}
			if err == nil {
				r.Fatal("the batch was not refused")
			}
			if got := receipts[1].Err.Error(); !strings.Contains(got, row.want) || !strings.Contains(got, "not stored") {
				r.Errorf("error %q, want %q in it", got, row.want)
			}
			if !errors.Is(err, receipts[1].Err) {
				r.Errorf("the error of the batch lacks that of its job: %v", err)
			}
			if refused, _ := eventsOf[backstage.JobEnqueued](r.events); len(refused) != 3 {
				r.Errorf("%d events JobEnqueued, want one for each refused job", len(refused))
			}
		})
	}
}

func TestErrorsOfInvalidJobsAreTyped(t *testing.T) {
	inBubble(t, func(r *rig) {
		keyed := task("keyed", func(t *backstage.Task[*text]) { t.Dedupe, t.DedupeFor = keyOf, time.Hour })
		_, err := backstage.Enqueue(r.Context(), r.client, job(keyed, ""))
		var empty *backstage.EmptyKeyError
		if !errors.As(err, &empty) || *empty != (backstage.EmptyKeyError{Task: "keyed", Key: "dedupe", Field: "value"}) {
			r.Errorf("error %v, want an *EmptyKeyError that names task, key and field", err)
		}
		_, err = backstage.Enqueue(r.Context(), r.newClient(backstage.ClientConfig{PayloadLimit: 10}), job(task("a"), "eight by"))
		if err != nil {
			r.Errorf("a payload of exactly the limit: %v", err)
		}
		_, err = backstage.Enqueue(r.Context(), r.newClient(backstage.ClientConfig{PayloadLimit: 10}), job(task("a"), "nine byte"))
		var large *backstage.TooLargeError
		if !errors.As(err, &large) || large.Size != 11 || large.Limit != 10 {
			r.Errorf("error %v, want a *TooLargeError of 11 over 10", err)
		}
	})
}

// TestAnOptionThatNeedsWhatIsMissing fails its call only, with nothing stored.
func TestAnOptionThatNeedsWhatIsMissing(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.p.Delays = nil
		_, err := backstage.Enqueue(r.Context(), r.client, job(task("a"), "", backstage.In(time.Hour)))
		var missing *backstage.MissingError
		if !errors.As(err, &missing) || missing.Capability != "Delays" {
			r.Errorf("In on a provider without Delays: %v, want a *MissingError", err)
		}
		r.enqueue(job(task("a"), ""))
		r.enqueue(job(task("a", func(t *backstage.Task[*text]) { t.Delay = time.Hour }), "", backstage.In(0)))
	})
}

func TestReceiptsSayWhatBecameOfEachJob(t *testing.T) {
	inBubble(t, func(r *rig) {
		jobs := []backstage.Job{job(task("a"), "1"), job(task("a"), "2"), job(task("a"), "3"), job(task("a"), "4")}
		r.hooks.publish = func(sent []provider.Job, _ provider.PublishOptions, _ func() []provider.Stored) []provider.Stored {
			return []provider.Stored{
				{ID: sent[0].ID, Outcome: provider.OutcomeStored},
				{ID: sent[1].ID, Outcome: provider.OutcomeDuplicate, Holder: "earlier"},
				{ID: sent[2].ID, Outcome: provider.OutcomeRefused, Err: errBoom},
				{ID: sent[3].ID, Outcome: provider.OutcomeUnknown},
			}
		}
		receipts, err := r.client.Enqueue(r.Context(), jobs...)
		if receipts[0] != (backstage.Receipt{ID: jobs[0].ID(), Outcome: backstage.Stored}) {
			r.Errorf("stored: %+v", receipts[0])
		}
		if receipts[1] != (backstage.Receipt{ID: "earlier", Duplicate: true, Outcome: backstage.Duplicate}) {
			r.Errorf("duplicate: %+v", receipts[1])
		}
		if got := receipts[2]; got.ID != jobs[2].ID() || got.Outcome != backstage.Refused || !errors.Is(got.Err, errBoom) {
			r.Errorf("refused: %+v", got)
		}
		if got := receipts[3]; got.ID != jobs[3].ID() || got.Outcome != backstage.Unknown || !strings.Contains(got.Err.Error(), "perhaps stored") {
			r.Errorf("unknown: %+v", got)
		}
		if !errors.Is(err, receipts[2].Err) || !errors.Is(err, receipts[3].Err) {
			r.Errorf("the error %v does not join those of the jobs", err)
		}
		if receipts, err := r.client.Enqueue(r.Context()); receipts != nil || err != nil {
			r.Errorf("enqueue of nothing: %v, %v", receipts, err)
		}
	})
}

// TestOneIDTwice: of jobs with one id none is lost, whatever runs beside it.
func TestOneIDTwice(t *testing.T) {
	inBubble(t, func(r *rig) {
		ran := newLedger()
		r.start(backstage.WorkerConfig{}, handle("a", func(_ context.Context, in string) error {
			time.Sleep(time.Second)
			ran.write(in)
			return nil
		}))
		one, other := job(task("a"), "one", backstage.WithID("id")), job(task("a"), "other", backstage.WithID("id"))
		if _, err := r.client.Enqueue(r.Context(), one, other, one); err != nil {
			r.Fatal(err)
		}
		r.enqueue(one)
		pass(time.Minute)
		got := ran.read()
		slices.Sort(got)
		if want := []string{"one", "one", "one", "other"}; !slices.Equal(got, want) {
			r.Errorf("runs of one id, enqueued four times at once: %v, want %v: none swallows another", got, want)
		}
		if random, another := job(task("a"), ""), job(task("a"), ""); one.ID() != "id" || random.ID() == another.ID() {
			r.Error("ids: want the given one, or random ones")
		}
	})
}

func TestDelays(t *testing.T) {
	inRounds(t, func(r *rig) {
		ran := newLedger()
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, in string) error {
			ran.write(in)
			info, _ := backstage.InfoFrom(ctx)
			if late := time.Since(info.FirstDue); late < 0 || late > time.Second {
				r.Errorf("%s runs %v after it was due", in, late)
			}
			return nil
		}))
		delayed := task("a", func(t *backstage.Task[*text]) { t.Delay = 3 * time.Hour })
		_, err := r.client.Enqueue(r.Context(),
			job(delayed, "task's own"),
			job(delayed, "In", backstage.In(time.Hour)),
			job(delayed, "At", backstage.At(time.Now().Add(2*time.Hour))),
			job(delayed, "In(0)", backstage.In(0)),
			job(task("a"), "the last wins", backstage.At(time.Now().Add(time.Hour)), backstage.In(4*time.Hour)),
		)
		if err != nil {
			r.Fatal(err)
		}
		r.enqueue(job(delayed, "past", backstage.At(time.Now().Add(-time.Hour))))
		pass(5 * time.Hour)
		got := ran.read()
		slices.Sort(got[:2])
		if want := []string{"In(0)", "past", "In", "At", "task's own", "the last wins"}; !slices.Equal(got, want) {
			r.Errorf("runs %q at %v, want %q, an hour apart", got, ran.at(), want)
		}
		for i, at := range ran.at()[1:] {
			if want := time.Duration(i) * time.Hour; at < want || at > want+time.Second {
				r.Errorf("run %d is at %v, want %v", i+1, at, want)
			}
		}
		r.wantNothingLeft()
	})
}

// TestAtCountsFromWhenItIsSent, not from when the Job was made.
func TestAtCountsFromWhenItIsSent(t *testing.T) {
	inBubble(t, func(r *rig) {
		ran := newLedger()
		r.start(backstage.WorkerConfig{}, handle("a", func(_ context.Context, in string) error { ran.write(in); return nil }))
		at, in := job(task("a"), "at", backstage.At(time.Now().Add(time.Hour))), job(task("a"), "in", backstage.In(time.Hour))
		pass(30 * time.Minute)
		if d := at.Delay(); d != 30*time.Minute {
			r.Errorf("At: delay now is %v, want 30m", d)
		}
		if !at.At().Equal(time.Now().Add(30*time.Minute)) || !in.At().IsZero() {
			r.Errorf("a job knows its time as %v, and %v where it has none", at.At(), in.At())
		}
		r.enqueue(at)
		r.enqueue(in)
		pass(2 * time.Hour)
		if got := ran.at(); len(got) != 2 || got[0] > time.Hour+time.Second || got[1] < 90*time.Minute {
			r.Errorf("runs at %v, want after 1h and after 1h30m", got)
		}
	})
}

func TestCancel(t *testing.T) {
	inRounds(t, func(r *rig) {
		var runs counter
		r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error { runs.add(); return nil }))
		a := task("a", func(t *backstage.Task[*text]) { t.Dedupe, t.DedupeFor = keyOf, 24*time.Hour })
		id := r.enqueue(job(a, "x", backstage.In(time.Hour))).ID
		if found, err := r.client.Cancel(r.Context(), id); !found || err != nil {
			r.Errorf("cancel of a held job: %t, %v", found, err)
		}
		if found, err := r.client.Cancel(r.Context(), id); found || err != nil {
			r.Errorf("cancel again: %t, %v", found, err)
		}
		pass(2 * time.Hour)
		if runs.get() != 0 {
			r.Error("a cancelled job ran")
		}
		if again := r.enqueue(job(a, "x")); again.Duplicate {
			r.Error("a cancelled job keeps its dedupe key")
		}
		if err := r.last.stop(); err != nil {
			r.Fatal(err)
		}
		r.p.Delays = nil
		var missing *backstage.MissingError
		if _, err := r.client.Cancel(r.Context(), id); !errors.As(err, &missing) {
			r.Errorf("cancel without Delays: %v, want a *MissingError", err)
		}
	})
}

// TestTheJobIsFixedWhenItIsMade: what happens to its message later does not matter.
func TestTheJobIsFixedWhenItIsMade(t *testing.T) {
	t.Parallel()
	in := &text{Value: "before"}
	j := backstage.NewJob(task("a", func(t *backstage.Task[*text]) { t.Dedupe, t.OrderingKey = keyOf, keyOf }), in)
	in.Value = "after"
	if got := j.Message(); !proto.Equal(got, &text{Value: "before"}) || j.DedupeKey() != "a:k/before" || j.OrderingKey() != "k/before" {
		t.Errorf("message %v, keys %q and %q; want those of before", got, j.DedupeKey(), j.OrderingKey())
	}
	j.Message().(*text).Value = "mine"
	if got := j.Message().(*text).GetValue(); got != "before" {
		t.Errorf("a message that was handed out changes the job: %q", got)
	}
}

// TestWithCopies: options on a copy leave the job as it is.
func TestWithCopies(t *testing.T) {
	t.Parallel()
	j := job(task("a"), "x", backstage.Header("h", "1"))
	k := j.With(backstage.Header("h", "2"), backstage.OnQueue("q"), backstage.In(time.Hour), backstage.WithID("id"))
	if j.Header("h") != "1" || j.Queue() != backstage.DefaultQueue || j.Delay() != 0 || j.ID() == "id" {
		t.Errorf("the original changed: header %q, queue %q, delay %v, id %q", j.Header("h"), j.Queue(), j.Delay(), j.ID())
	}
	if k.Header("h") != "2" || k.Queue() != "q" || k.Delay() != time.Hour || k.ID() != "id" || k.Task() != "a" {
		t.Errorf("the copy: header %q, queue %q, delay %v, id %q, task %q", k.Header("h"), k.Queue(), k.Delay(), k.ID(), k.Task())
	}
	if j.Err() != nil || j.With(backstage.In(-1)).Err() == nil || j.Err() != nil {
		t.Error("an error of a copy must be the copy's alone")
	}
	var zero backstage.Job
	if zero.ID() != "" || zero.Task() != "" || zero.Message() != nil || zero.Err() == nil || zero.Delay() != 0 {
		t.Error("the zero Job: want empty answers and an error")
	}
}

// TestOneIDOfTwoTasks holds two jobs: an order's id is an ordinary one for each of its
// tasks.
func TestOneIDOfTwoTasks(t *testing.T) {
	inRounds(t, func(r *rig) {
		ran := newLedger()
		note := func(name string) handled {
			return handle(name, func(context.Context, string) error { ran.write(name); return nil })
		}
		r.start(backstage.WorkerConfig{}, note("a"), note("b"))
		for _, name := range []string{"a", "b"} {
			r.enqueue(job(task(name), "x", backstage.WithID("order-1"), backstage.In(time.Minute)))
		}
		pass(time.Hour)
		if got := slices.Sorted(slices.Values(ran.read())); !slices.Equal(got, []string{"a", "b"}) {
			r.Errorf("ran %v, want both", got)
		}
	})
}
