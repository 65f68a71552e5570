package backstage_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	backstage "github.com/backstage-go/backstage/runtime"
)

func TestEnqueueInterceptors(t *testing.T) {
	inBubble(t, func(r *rig) {
		calls := newLedger()
		note := func(name string) backstage.EnqueueInterceptor {
			return func(next backstage.EnqueueFunc) backstage.EnqueueFunc {
				return func(ctx context.Context, jobs []backstage.Job) ([]backstage.Receipt, error) {
					calls.write(name + " before")
					defer calls.write(name + " after")
					changed := make([]backstage.Job, len(jobs))
					for i, j := range jobs {
						changed[i] = j.With(backstage.Header(name, "was here"))
					}
					return next(ctx, changed)
				}
			}
		}
		r.client = r.newClient(backstage.ClientConfig{Interceptors: []backstage.EnqueueInterceptor{note("outer"), note("inner")}})
		headers := make(chan map[string]string, 1)
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
			info, _ := backstage.InfoFrom(ctx)
			headers <- info.Headers
			return nil
		}))
		r.enqueue(job(task("a"), "", backstage.Header("own", "x")))
		if want := []string{"outer before", "inner before", "inner after", "outer after"}; !slices.Equal(calls.read(), want) {
			r.Errorf("calls %v, want %v", calls.read(), want)
		}
		if got := <-headers; len(got) != 3 || got["outer"] != "was here" || got["inner"] != "was here" || got["own"] != "x" {
			r.Errorf("headers %v, want those of both interceptors and the caller", got)
		}
	})
}

// TestAnInterceptorThatReturnsNothing does not look like success.
func TestAnInterceptorThatReturnsNothing(t *testing.T) {
	inBubble(t, func(r *rig) {
		swallow := func(backstage.EnqueueFunc) backstage.EnqueueFunc {
			return func(context.Context, []backstage.Job) ([]backstage.Receipt, error) { return nil, nil }
		}
		client := r.newClient(backstage.ClientConfig{Interceptors: []backstage.EnqueueInterceptor{swallow}})
		j := job(task("a"), "")
		if got, err := backstage.Enqueue(r.Context(), client, j); err == nil || got.ID != j.ID() || got.Outcome != backstage.Unknown || got.Err == nil {
			r.Errorf("enqueue through an interceptor without receipts: %+v, %v; want unknown and an error", got, err)
		}
	})
}

func TestHandlerInterceptors(t *testing.T) {
	inBubble(t, func(r *rig) {
		calls := newLedger()
		type key struct{}
		note := func(name string) backstage.Interceptor {
			return func(next backstage.HandleFunc) backstage.HandleFunc {
				return func(ctx context.Context, run *backstage.Run) error {
					calls.write(name)
					if in := run.Message().(*text).GetValue(); in != "payload" || run.Info().Task != "a" {
						r.Errorf("%s sees %q of task %s", name, in, run.Info().Task)
					}
					names, _ := ctx.Value(key{}).(string)
					err := next(context.WithValue(ctx, key{}, names+name), run)
					calls.write(name + " " + errText(err))
					if n := len(run.Next()); n != 1 {
						r.Errorf("%s sees %d next jobs, want 1", name, n)
					}
					return err
				}
			}
		}
		swallow := func(next backstage.HandleFunc) backstage.HandleFunc {
			return func(ctx context.Context, run *backstage.Run) error {
				_ = next(ctx, run)
				return nil
			}
		}
		r.start(backstage.WorkerConfig{Interceptors: []backstage.Interceptor{note("1"), swallow, note("2")}}, chain("a", func(ctx context.Context, _ string, next *backstage.Next) error {
			if got := ctx.Value(key{}); got != "1234" {
				r.Errorf("the handler's context has %q, want what all four added", got)
			}
			if info, ok := backstage.InfoFrom(ctx); !ok || info.Attempt != 1 {
				r.Errorf("InfoFrom in the handler: %+v, %t", info, ok)
			}
			add(next, task("b"), "")
			return errBoom
		}, backstage.Intercept(note("3")), backstage.Intercept(note("4"))))
		id := r.enqueue(job(task("a"), "payload")).ID
		pass(0)
		if want := []string{"1", "2", "3", "4", "4 boom", "3 boom", "2 boom", "1 nil"}; !slices.Equal(calls.read()[:8], want) {
			r.Errorf("calls %v, want %v", calls.read(), want)
		}
		r.wantLife(id, "enqueued: stored", "run 1", "done", "acked with 1 next")
	})
}

func errText(err error) string {
	if err == nil {
		return "nil"
	}
	return err.Error()
}

func TestInterceptorThatPanics(t *testing.T) {
	inBubble(t, func(r *rig) {
		boom := func(backstage.HandleFunc) backstage.HandleFunc {
			return func(context.Context, *backstage.Run) error { panic("in an interceptor") }
		}
		r.start(backstage.WorkerConfig{Interceptors: []backstage.Interceptor{boom}}, handle("a", nothing))
		id := r.enqueue(job(task("a"), "", backstage.WithMaxAttempts(1))).ID
		pass(time.Second)
		r.wantLife(id, "enqueued: stored", "run 1", "panic", "dead-lettered as exhausted")
	})
}

// ownKey is a key of the user's own.
type ownKey struct{}

func TestInfo(t *testing.T) {
	inBubble(t, func(r *rig) {
		if info, ok := backstage.InfoFrom(r.Context()); ok {
			r.Errorf("InfoFrom outside a handler: %+v", info)
		}
		made := time.Now()
		infos := make(chan backstage.Info, 1)
		w := r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
			info, _ := backstage.InfoFrom(context.WithValue(ctx, ownKey{}, 2))
			infos <- info
			return nil
		}, backstage.Policy{MaxAttempts: 9}))
		r.enqueue(job(task("a", ordered), "x", backstage.WithID("id"), backstage.In(time.Hour), backstage.Header("h", "v")))
		pass(2 * time.Hour)
		got := <-infos
		if got.ID != "id" || got.Task != "a" || got.Queue != backstage.DefaultQueue || got.Worker != w.Name() || got.Attempt != 1 || got.MaxAttempts != 9 ||
			!got.Enqueued.Equal(made) || !got.FirstDue.Equal(made.Add(time.Hour)) || got.Root != "id" || got.Parent != "" || got.OrderingKey != "k/x" || got.Headers["h"] != "v" {
			r.Errorf("info %+v", got)
		}
	})
}

// TestEventsOfALife: complete, in order, with what they carry.
func TestEventsOfALife(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.start(backstage.WorkerConfig{}, handle("a", func(ctx context.Context, _ string) error {
			time.Sleep(time.Second)
			if info, _ := backstage.InfoFrom(ctx); info.Attempt == 1 {
				return backstage.RetryAfter(errBoom, time.Minute)
			}
			return nil
		}))
		j := job(task("a"), "", backstage.In(time.Hour))
		r.enqueue(j)
		pass(2 * time.Hour)
		err := r.last.stop()
		r.wantLife(j.ID(), "enqueued: stored", "run 1", "failed", "retried as failed", "run 2", "done", "acked")
		if got := strings.Join(r.events.life("worker"), "; "); err != nil || got != "started on default; stopped" {
			r.Errorf("worker: %s", got)
		}
		enqueued, _ := eventsOf[backstage.JobEnqueued](r.events)
		if enqueued[0].Job.ID() != j.ID() || enqueued[0].Receipt.Outcome != backstage.Stored {
			r.Errorf("JobEnqueued %+v", enqueued[0])
		}
		started, _ := eventsOf[backstage.RunStarted](r.events)
		if started[0].Waited < 0 || started[0].Waited > time.Second || started[1].Waited < 61*time.Second {
			r.Errorf("RunStarted.Waited %v and %v, want the time from first due", started[0].Waited, started[1].Waited)
		}
		ended, _ := eventsOf[backstage.RunEnded](r.events)
		if ended[0].Took != time.Second || !errors.Is(ended[0].Err, errBoom) || ended[0].Late || ended[1].Err != nil {
			r.Errorf("RunEnded %+v", ended)
		}
		settled, _ := eventsOf[backstage.JobSettled](r.events)
		if settled[0].After != time.Minute || settled[0].Failure.Message != "boom" || settled[0].Failure.Worker != r.last.Name() || settled[1].Failure.Class != "" {
			r.Errorf("JobSettled %+v", settled)
		}
	})
}

// TestPayloadsAreNeverLogged, whatever happens to their jobs.
func TestPayloadsAreNeverLogged(t *testing.T) {
	inRounds(t, func(r *rig) {
		const secret = "4111-1111-1111-1111"
		r.start(backstage.WorkerConfig{PayloadLimit: 100}, chain("a", func(_ context.Context, in string, next *backstage.Next) error {
			switch {
			case strings.HasSuffix(in, "fails"):
				return errBoom
			case strings.HasSuffix(in, "panics"):
				panic("boom")
			case strings.HasSuffix(in, "chains"):
				add(next, task("a"), strings.Repeat(secret, 100))
			case strings.HasSuffix(in, "late"):
				time.Sleep(5 * time.Minute)
			}
			return nil
		}, backstage.Policy{MaxAttempts: 2}))
		for _, end := range []string{"done", "fails", "panics", "chains", "late"} {
			r.enqueue(job(task("a", window(time.Hour)), secret+end))
			r.enqueue(job(task("unknown", untilDone), secret+end, backstage.WithMaxAge(time.Minute)))
		}
		r.store.Put(backstage.DefaultQueue, []byte(secret))
		pass(time.Hour)
		if log := r.logs.String(); strings.Contains(log, "4111") || !strings.Contains(log, "dead-lettered") {
			r.Errorf("the log shows a payload, or nothing:\n%s", log)
		}
	})
}

// TestJobsThatAnInterceptorDropped do not look stored in a batch either.
func TestJobsThatAnInterceptorDropped(t *testing.T) {
	inBubble(t, func(r *rig) {
		drop := func(next backstage.EnqueueFunc) backstage.EnqueueFunc {
			return func(ctx context.Context, jobs []backstage.Job) ([]backstage.Receipt, error) {
				return next(ctx, jobs[:1])
			}
		}
		client := r.newClient(backstage.ClientConfig{Interceptors: []backstage.EnqueueInterceptor{drop}})
		if got, err := client.Enqueue(r.Context(), job(task("a"), "1"), job(task("a"), "2")); err == nil {
			r.Errorf("enqueue of two jobs of which an interceptor dropped one: %+v and no error", got)
		}
	})
}

// TestAnInterceptorThatTriesAgain does not double the next jobs.
func TestAnInterceptorThatTriesAgain(t *testing.T) {
	inRounds(t, func(r *rig) {
		again := func(next backstage.HandleFunc) backstage.HandleFunc {
			return func(ctx context.Context, run *backstage.Run) error {
				if err := next(ctx, run); err == nil {
					return nil
				}
				return next(ctx, run)
			}
		}
		calls := new(counter)
		first := func(_ context.Context, _ string, next *backstage.Next) error {
			backstage.Add(next, task("b"), "a.b", &text{Value: "next"})
			if calls.add() == 1 {
				return errors.New("once")
			}
			return nil
		}
		r.start(backstage.WorkerConfig{}, chain("a", first, backstage.Intercept(again)), handle("b", nothing))
		id := r.enqueue(job(task("a"), "")).ID
		pass(time.Minute)
		r.wantLife(id, "enqueued: stored", "run 1", "done", "acked with 1 next")
		r.wantNothingLeft("default")
	})
}

// TestAnObserverThatPanics costs neither the process nor a job.
func TestAnObserverThatPanics(t *testing.T) {
	inBubble(t, func(r *rig) {
		panics := func(backstage.Event) { panic("at the metric") }
		client := r.newClient(backstage.ClientConfig{Observer: panics})
		if got, err := client.Enqueue(r.Context(), job(task("a"), "1"), job(task("a"), "2")); err != nil || len(got) != 2 {
			r.Errorf("enqueue under an observer that panics: %+v, %v; want two receipts", got, err)
		}
		ran := new(counter)
		r.start(backstage.WorkerConfig{Observer: panics}, handle("a", func(context.Context, string) error { ran.add(); return nil }))
		pass(time.Minute)
		if ran.get() != 2 {
			r.Errorf("%d runs, want 2", ran.get())
		}
		r.wantNothingLeft("default")
		r.wantLog("level=ERROR", `"the observer panicked"`, "event=backstage.RunStarted", "at the metric", "stack=")
	})
}
