package backstage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

func add(next *backstage.Next, t backstage.Task[*text], value string, opts ...backstage.EdgeOption) {
	backstage.Add(next, t, "a."+t.Name, &text{Value: value}, opts...)
}

// TestFanOut: next jobs of loops and branches, each with a wait of its own.
func TestFanOut(t *testing.T) {
	inRounds(t, func(r *rig) {
		ran := newLedger()
		note := func(ctx context.Context, in string) error {
			info, _ := backstage.InfoFrom(ctx)
			ran.write(info.Task + " " + in)
			return nil
		}
		r.start(backstage.WorkerConfig{}, chain("a", func(_ context.Context, in string, next *backstage.Next) error {
			for i := range 3 {
				add(next, task("parcel"), fmt.Sprint(i), backstage.In(time.Duration(i)*time.Hour))
			}
			if in == "mail" {
				add(next, task("mail"), in)
			} else {
				add(next, task("call"), in)
			}
			return nil
		}), handle("parcel", note), handle("mail", note), handle("call", note))
		id := r.enqueue(job(task("a"), "mail")).ID
		pass(3 * time.Hour)
		got, at := ran.read(), ran.at()
		slices.Sort(got[:2])
		if want := []string{"mail mail", "parcel 0", "parcel 1", "parcel 2"}; !slices.Equal(got, want) {
			r.Errorf("next jobs that ran: %q, want %q", got, want)
		}
		if at[1] != 0 || at[2] < time.Hour || at[2] > time.Hour+time.Second || at[3] < 2*time.Hour {
			r.Errorf("they ran at %v, want at once, after 1h and after 2h", at)
		}
		r.wantLife(id, "enqueued: stored", "run 1", "done", "acked with 4 next")
		r.wantNothingLeft()
	})
}

// TestAnErrorDiscardsTheSteps of its run, and the run that succeeds has its own.
func TestAnErrorDiscardsTheSteps(t *testing.T) {
	inRounds(t, func(r *rig) {
		ran := newLedger()
		var runs counter
		r.start(backstage.WorkerConfig{}, chain("a", func(_ context.Context, _ string, next *backstage.Next) error {
			n := runs.add()
			add(next, task("b"), fmt.Sprint("of run ", n))
			switch n {
			case 1:
				return errBoom
			case 2:
				panic("boom")
			case 3:
				return backstage.Snooze(time.Second)
			}
			return nil
		}), handle("b", func(_ context.Context, in string) error { ran.write(in); return nil }))
		r.enqueue(job(task("a"), ""))
		pass(time.Hour)
		if got := ran.read(); !slices.Equal(got, []string{"of run 4"}) {
			r.Errorf("next jobs that ran: %q, want that of run 4 only", got)
		}
	})
}

// TestNextJobIDs: stable over reruns, different for equal ones and for others.
func TestNextJobIDs(t *testing.T) {
	inBubble(t, func(r *rig) {
		var runs [][]provider.Job
		r.hooks.ack = func(_ provider.Delivery, next []provider.Job) {
			if len(next) > 0 {
				runs = append(runs, next)
			}
		}
		steps := func(_ context.Context, _ string, next *backstage.Next) error {
			add(next, task("b"), "same")
			add(next, task("b"), "same", backstage.In(time.Minute))
			add(next, task("c"), "same")
			add(next, task("b"), "other")
			add(next, task("b"), "same")
			add(next, task("b"), "")
			return nil
		}
		r.start(backstage.WorkerConfig{}, chain("a", steps), handle("b", nothing), handle("c", nothing))
		parent := job(task("a"), "", backstage.WithID("parent"))
		r.enqueue(parent)
		pass(time.Second)
		r.enqueue(parent) // the same job again, as after a crash
		pass(time.Second)
		r.enqueue(job(task("a"), "", backstage.WithID("other-parent")))
		pass(time.Hour)
		if len(runs) != 3 {
			r.Fatalf("%d acks with next jobs, want 3", len(runs))
		}
		ids := func(jobs []provider.Job) (ids []string) {
			for _, j := range jobs {
				ids = append(ids, j.ID)
			}
			return ids
		}
		if !slices.Equal(ids(runs[0]), ids(runs[1])) {
			r.Errorf("ids of a rerun differ:\n%v\n%v", ids(runs[0]), ids(runs[1]))
		}
		seen := map[string]bool{}
		for _, id := range append(ids(runs[0]), ids(runs[2])...) {
			if seen[id] {
				r.Errorf("two next jobs have the id %s", id)
			}
			seen[id] = true
		}
		var ordinals []int32
		for _, j := range runs[0] {
			ordinals = append(ordinals, j.Ordinal)
		}
		if want := []int32{0, 1, 0, 0, 2, 0}; !slices.Equal(ordinals, want) {
			r.Errorf("ordinals %v, want %v", ordinals, want)
		}
	})
}

// TestGenealogy: root, parent and edge down a chain, and headers that stay behind.
func TestGenealogy(t *testing.T) {
	inRounds(t, func(r *rig) {
		infos := make(chan backstage.Info, 3)
		see := func(ctx context.Context) { info, _ := backstage.InfoFrom(ctx); infos <- info }
		r.start(backstage.WorkerConfig{}, chain("a", func(ctx context.Context, _ string, next *backstage.Next) error {
			see(ctx)
			add(next, task("b"), "", backstage.Header("h", "of b"))
			return nil
		}), chain("b", func(ctx context.Context, _ string, next *backstage.Next) error {
			see(ctx)
			backstage.Add(next, task("c"), "b.c", &text{})
			return nil
		}), handle("c", func(ctx context.Context, _ string) error { see(ctx); return nil }))
		id := r.enqueue(job(task("a"), "", backstage.Header("h", "of a"), backstage.Header("h2", "x"))).ID
		pass(time.Second)
		a, b, c := <-infos, <-infos, <-infos
		if a.Root != id || a.Parent != "" || a.Edge != "" || a.Headers["h"] != "of a" || a.Headers["h2"] != "x" {
			r.Errorf("the first: %+v; want itself as root, no parent, its headers", a)
		}
		if b.Root != id || b.Parent != id || b.Edge != "a.b" || len(b.Headers) != 1 || b.Headers["h"] != "of b" {
			r.Errorf("the second: %+v; want root and parent %s, edge a.b, its own header", b, id)
		}
		if c.Root != id || c.Parent != b.ID || c.Edge != "b.c" || len(c.Headers) != 0 {
			r.Errorf("the third: %+v; want root %s, parent %s, edge b.c", c, id, b.ID)
		}
	})
}

// TestInvalidNextJob is permanent, names edge and field, and stores no next job.
func TestInvalidNextJob(t *testing.T) {
	keyed := task("keyed", func(t *backstage.Task[*text]) { t.Dedupe, t.DedupeFor = keyOf, time.Hour })
	ordered := task("ordered", func(t *backstage.Task[*text]) { t.OrderingKey = keyOf })
	for _, row := range []struct {
		name string
		add  func(*backstage.Next)
		want []string
	}{
		{"empty dedupe key", func(n *backstage.Next) { add(n, keyed, "") }, []string{"edge a.keyed", "task keyed: dedupe", `field "value" is empty`}},
		{"empty ordering key", func(n *backstage.Next) { add(n, ordered, "") }, []string{"edge a.ordered", "ordering_key", `field "value" is empty`}},
		{"too large", func(n *backstage.Next) { add(n, task("b"), strings.Repeat("x", 1000)) }, []string{"edge a.b", "payload has 1003 bytes, the limit is 100"}},
		{"negative delay", func(n *backstage.Next) { add(n, task("b"), "", backstage.In(-1)) }, []string{"edge a.b", "In(-1ns)"}},
		{"nil payload", func(n *backstage.Next) { backstage.Add(n, task("b"), "a.b", nil) }, []string{"edge a.b", "payload is nil"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			inRounds(t, func(r *rig) {
				r.start(backstage.WorkerConfig{PayloadLimit: 100}, chain("a", func(_ context.Context, _ string, next *backstage.Next) error {
					add(next, task("b"), "valid")
					row.add(next)
					add(next, task("b"), "valid too")
					return nil
				}), handle("b", func(context.Context, string) error { r.Error("a next job ran beside an invalid one"); return nil }))
				id := r.enqueue(job(task("a"), "")).ID
				pass(time.Minute)
				r.wantLife(id, "enqueued: stored", "run 1", "done", "dead-lettered as permanent")
				f := r.onlyDead().Failure
				for _, want := range row.want {
					if !strings.Contains(f.Message, want) {
						r.Errorf("dead letter says %q, want %q in it", f.Message, want)
					}
				}
			})
		})
	}
}

// TestNextJobThatIsADuplicate counts as stored.
func TestNextJobThatIsADuplicate(t *testing.T) {
	inRounds(t, func(r *rig) {
		b := task("b", func(t *backstage.Task[*text]) { t.Dedupe, t.DedupeFor = keyOf, time.Hour })
		var runs counter
		r.start(backstage.WorkerConfig{}, chain("a", func(_ context.Context, _ string, next *backstage.Next) error {
			add(next, b, "x")
			add(next, b, "x")
			add(next, b, "x", backstage.In(time.Second))
			return nil
		}), handle("b", func(context.Context, string) error { runs.add(); return nil }))
		r.enqueue(job(b, "x"))
		pass(0)
		id := r.enqueue(job(task("a"), "")).ID
		pass(time.Minute)
		if runs.get() != 1 {
			r.Errorf("%d runs of one dedupe key, want 1", runs.get())
		}
		r.wantLife(id, "enqueued: stored", "run 1", "done", "acked with 3 next")
		r.wantNothingLeft()
	})
}

// TestHandoffFailureIsNotLost: next jobs come before the ack, however often it
// fails.
func TestHandoffFailureIsNotLost(t *testing.T) {
	inRounds(t, func(r *rig) {
		var tries, runs counter
		r.hooks.settle = func(verb string, d provider.Delivery, do func() error) error {
			if d.Job().Task == "a" && tries.add() <= 3 {
				return errors.New("no connection")
			}
			return do()
		}
		ran := newLedger()
		r.start(backstage.WorkerConfig{}, chain("a", func(_ context.Context, _ string, next *backstage.Next) error {
			runs.add()
			add(next, task("b"), "now")
			add(next, task("b"), "later", backstage.In(time.Minute))
			return nil
		}), handle("b", func(_ context.Context, in string) error { ran.write(in); return nil }))
		r.enqueue(job(task("a"), ""))
		pass(time.Hour)
		if got := ran.read(); runs.get() != 1 || !slices.Equal(got, []string{"now", "later"}) {
			r.Errorf("%d runs, next jobs that ran: %q; want one run, each next job once", runs.get(), got)
		}
		r.wantNothingLeft()
	})
}

func TestTakenShowsWhatAHandlerChose(t *testing.T) {
	t.Parallel()
	var next backstage.Next
	if got := backstage.Taken(&next); got != nil {
		t.Errorf("of a handler that chose nothing: %v", got)
	}
	add(&next, task("b"), "x", backstage.In(time.Hour), backstage.Header("h", "v"))
	got := backstage.Taken(&next)
	if len(got) != 1 || got[0].Task() != "b" || got[0].Delay() != time.Hour || got[0].Header("h") != "v" || got[0].Message().(*text).GetValue() != "x" {
		t.Errorf("taken: %+v", got)
	}
}
