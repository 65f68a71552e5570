package backstage_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers/memory"
	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/provider"
)

// TestRunReturnsAllThatIsWrong before it receives, joined.
func TestRunReturnsAllThatIsWrong(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.p.Delays, r.p.Claims = nil, nil
		r.hooks.facts = func(f *provider.JobFacts) { f.Ordered = false }
		r.hooks.subscribe = func(provider.SubscribeOptions) error { r.Error("it subscribed all the same"); return nil }
		next := []backstage.Needs{{Task: "later", Delay: true, Dedupe: true, Order: true}}
		w := r.newWorker(backstage.WorkerConfig{Queues: []backstage.Queue{{Name: "default"}, {Name: "q"}}},
			handle("twice", nothing, backstage.Registration{Aliases: []string{"two"}}),
			handle("twice", nothing, backstage.Registration{Aliases: []string{"two"}}),
			handle("new", nothing, backstage.Registration{Aliases: []string{"old", "twice"}}),
			handle("newer", nothing, backstage.Registration{Aliases: []string{"old"}}),
			handle("lonely", nothing, backstage.Registration{Queue: "mail"}),
			handle("moved", nothing, backstage.Registration{Queue: "mail"}, backstage.Serve("q")),
			handle("wide", nothing, backstage.Serve("bulk", "no name")),
			func(w *backstage.Worker) { backstage.Register[*text](w, backstage.Registration{Name: "hollow"}, nil) },
			func(w *backstage.Worker) {
				backstage.RegisterChain[*text, backstage.Next](w, backstage.Registration{Name: "void"}, nil)
			},
			handle("parent", nothing, backstage.Registration{Next: next}))
		err := w.Run(r.Context())
		if err == nil {
			r.Fatal("Run returned nil")
		}
		for _, want := range []string{
			`task twice is registered twice`,
			`alias "twice" of task new is also a name of task twice`,
			`alias "old" of task newer is also a name of task new`,
			`task lonely can never run: its queue "mail" is not among the worker's Queues ("default", "q"); add it, or say with Serve`,
			`task wide: Serve("bulk"): it is not among the worker's Queues ("default", "q"); add it`,
			`task wide: Serve("no name"): it has a space or a character that is not plain ASCII`,
			`task hollow: the handler is nil`,
			`task void: the handler is nil`,
			`provider memory has no Delays, which retries of task parent need; lend it some`,
			`provider memory has no Delays, which delayed jobs of task later need; lend it some`,
			`provider memory has no Claims, which dedupe keys of task later need; lend it some`,
			`provider memory has no order per key, which ordering keys of task later need; run the task`,
		} {
			if !strings.Contains(err.Error(), want) {
				r.Errorf("Run's error lacks %q:\n%v", want, err)
			}
		}
		for _, unwanted := range []string{"two", "task moved can never"} {
			if strings.Contains(err.Error(), unwanted) {
				r.Errorf("Run's error has %q:\n%v", unwanted, err)
			}
		}
		var missing *backstage.MissingError
		if !errors.As(err, &missing) || missing.Provider != "memory" {
			r.Errorf("Run's error holds no *MissingError of memory: %v", err)
		}
	})
}

func TestRunWithoutTasks(t *testing.T) {
	inBubble(t, func(r *rig) {
		if err := r.newWorker(backstage.WorkerConfig{}).Run(r.Context()); err == nil || !strings.Contains(err.Error(), "no task is registered") {
			r.Errorf("Run without tasks = %v, want an error that says so", err)
		}
	})
}

// TestRetriesNeedDelays, also where ordered jobs can be retried without.
func TestRetriesNeedDelays(t *testing.T) {
	for _, row := range []struct {
		retries provider.Retries
		ok      bool
	}{{provider.RetriesNone, false}, {provider.RetriesOrdered, false}, {provider.RetriesAll, true}} {
		inBubbleSub(t, fmt.Sprint(row.retries), func(r *rig) {
			r.p.Delays = nil
			r.hooks.facts = func(f *provider.JobFacts) { f.Retries = row.retries }
			w := r.newWorker(backstage.WorkerConfig{}, handle("a", nothing))
			ctx, cancel := context.WithTimeout(r.Context(), time.Second)
			defer cancel()
			if err := w.Run(ctx); (err == nil) != row.ok {
				r.Errorf("without Delays, retries %d: Run = %v, want ok %t", row.retries, err, row.ok)
			}
		})
	}
}

func TestClientCheckNamesEveryTaskAndCapability(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.p.Delays, r.p.Claims = nil, nil
		r.hooks.facts = func(f *provider.JobFacts) { f.Ordered = false }
		err := r.client.Check(
			task("a", func(t *backstage.Task[*text]) { t.Delay = time.Second }).Needs(),
			task("b", func(t *backstage.Task[*text]) { t.Dedupe = keyOf }).Needs(),
			task("c", func(t *backstage.Task[*text]) { t.OrderingKey = keyOf }).Needs(),
			task("d").Needs(),
		)
		want := []string{
			`provider memory has no Delays, which delayed jobs of task a need; lend it some from a store that has them: p.Delays, p.Claims = store.Lend("memory")`,
			`provider memory has no Claims, which dedupe keys of task b need; lend it some from a store that has them: p.Delays, p.Claims = store.Lend("memory")`,
			`provider memory has no order per key, which ordering keys of task c need; run the task on a provider that keeps order, or remove its ordering_key`,
		}
		if err == nil || !slices.Equal(strings.Split(err.Error(), "\n"), want) {
			r.Errorf("Check = %v\nwant:\n%s", err, strings.Join(want, "\n"))
		}
		if err := r.client.Check(task("d").Needs()); err != nil {
			r.Errorf("Check of a task that needs nothing = %v", err)
		}
	})
}

func TestRunTwice(t *testing.T) {
	inBubble(t, func(r *rig) {
		w := r.start(backstage.WorkerConfig{}, handle("a", nothing))
		if err := w.Run(r.Context()); err == nil || !strings.Contains(err.Error(), "worker has run already") {
			r.Errorf("second Run = %v, want an error that says so", err)
		}
		if err := w.stop(); err != nil {
			r.Errorf("first Run = %v, want nil", err)
		}
		if err := w.Run(r.Context()); err == nil {
			r.Error("Run after Run returned nil")
		}
	})
}

// TestRunAgainAfterItCouldNotBegin: what kept it from beginning may be over.
func TestRunAgainAfterItCouldNotBegin(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.hooks.subscribe = func(provider.SubscribeOptions) error { return errBoom }
		w := r.newWorker(backstage.WorkerConfig{}, handle("a", nothing))
		if err := w.Run(r.Context()); !errors.Is(err, errBoom) {
			r.Fatalf("Run = %v, want what kept it from subscribing", err)
		}
		r.hooks.subscribe = nil
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			r.Errorf("Run after a failed one = %v, want nil", err)
		}
	})
}

// TestRunWithAnEndedContext is an ordinary stop, but what is wrong is still told.
func TestRunWithAnEndedContext(t *testing.T) {
	inBubble(t, func(r *rig) {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		if err := r.newWorker(backstage.WorkerConfig{}, handle("a", nothing)).Run(ctx); err != nil {
			r.Errorf("Run with an ended context = %v, want nil", err)
		}
		if err := r.newWorker(backstage.WorkerConfig{}).Run(ctx); err == nil {
			r.Error("Run with an ended context and no tasks = nil, want what is wrong")
		}
	})
}

func TestHealthFollowsTheWorkersLife(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.hooks.subscribe = func(provider.SubscribeOptions) error { time.Sleep(time.Minute); return nil }
		w := r.start(backstage.WorkerConfig{}, handle("a", nothing))
		asked := time.Now()
		if err := w.Health(r.Context()); err == nil {
			r.Error("health while the worker subscribes = nil, want an error")
		}
		if waited := time.Since(asked); waited > 0 {
			r.Errorf("health waited %v for the subscription", waited)
		}
		pass(2 * time.Minute)
		if err := w.Health(r.Context()); err != nil {
			r.Errorf("health of a running worker = %v, want nil", err)
		}
		if err := w.stop(); err != nil {
			r.Fatalf("Run = %v", err)
		}
		if err := w.Health(r.Context()); err == nil {
			r.Error("health of a stopped worker = nil, want an error")
		}
	})
}

func TestHealthIncludesTheProviders(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.p.Health = func(context.Context) error { return errBoom }
		w := r.start(backstage.WorkerConfig{}, handle("a", nothing))
		if err := w.Health(r.Context()); !errors.Is(err, errBoom) {
			r.Errorf("health = %v, want the provider's", err)
		}
	})
}

func TestRegisteringTooLateIsLogged(t *testing.T) {
	inBubble(t, func(r *rig) {
		w := r.start(backstage.WorkerConfig{}, handle("a", nothing))
		handle("late", nothing)(w.Worker)
		if log := r.logs.String(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "late") {
			r.Errorf("a task registered while the worker runs is not in the log as an error:\n%s", log)
		}
	})
}

func TestReceiveFailedForGood(t *testing.T) {
	inBubble(t, func(r *rig) {
		broken := make(chan struct{})
		var calls counter
		r.hooks.receive = func(_ context.Context, _ []string, _ int, do func() ([]provider.Delivery, error)) ([]provider.Delivery, error) {
			if calls.add() == 1 {
				return do()
			}
			<-broken
			return nil, errBoom
		}
		ended := false
		w := r.start(backstage.WorkerConfig{}, handle("a", func(context.Context, string) error {
			close(broken)
			time.Sleep(5 * time.Second)
			ended = true
			return nil
		}))
		r.enqueue(job(task("a"), ""))
		<-w.done
		if !errors.Is(w.err, errBoom) || !ended {
			r.Errorf("Run = %v with its handler ended %t; want the receive error after the handler", w.err, ended)
		}
		r.wantNothingLeft()
	})
}

// TestConfigurationOutOfRange is refused by the field that is wrong, all at once.
func TestConfigurationOutOfRange(t *testing.T) {
	inBubble(t, func(r *rig) {
		for _, row := range []struct {
			cfg  backstage.WorkerConfig
			want string
		}{
			{backstage.WorkerConfig{Concurrency: -1}, "new worker: Concurrency must not be negative"},
			{backstage.WorkerConfig{Lease: -1, PayloadLimit: -1}, "new worker: Lease must not be negative\nPayloadLimit must not be negative"},
			{backstage.WorkerConfig{ShutdownGrace: -1}, "new worker: ShutdownGrace must not be negative"},
			{backstage.WorkerConfig{Queues: []backstage.Queue{{}}}, "new worker: Queues[0]: Name: must not be empty"},
			{backstage.WorkerConfig{Queues: []backstage.Queue{{Name: "a b"}}}, `new worker: Queues[0]: Name("a b"): it has a space`},
			{backstage.WorkerConfig{Queues: []backstage.Queue{{Name: "a", Weight: -1}}}, "new worker: Queues[0]: Weight must not be negative"},
			{backstage.WorkerConfig{Queues: []backstage.Queue{{Name: "a"}, {Name: "a", Weight: 2}}}, `new worker: Queues[1]: queue "a" is named twice`},
		} {
			if _, err := backstage.NewWorker(r.p, row.cfg); err == nil || !strings.HasPrefix(err.Error(), row.want) {
				r.Errorf("NewWorker(%+v) = %v, want %q", row.cfg, err, row.want)
			}
		}
		if _, err := backstage.NewClient(r.p, backstage.ClientConfig{PayloadLimit: -1}); err == nil {
			r.Error("NewClient with a negative payload limit: no error")
		}
		if _, err := backstage.NewClient(nil, backstage.ClientConfig{}); err == nil {
			r.Error("NewClient(nil): no error")
		}
		if _, err := backstage.NewWorker(&provider.Provider{}, backstage.WorkerConfig{}); err == nil {
			r.Error("NewWorker of an empty provider: no error")
		}
	})
}

// TestNextTasksThatRunElsewhereAreLogged, with the queue that somebody must serve.
func TestNextTasksThatRunElsewhereAreLogged(t *testing.T) {
	inBubble(t, func(r *rig) {
		mail := task("mail", func(t *backstage.Task[*text]) { t.Queue = "post" }).Needs()
		r.start(backstage.WorkerConfig{},
			handle("a", nothing, backstage.Registration{Next: []backstage.Needs{mail, task("b").Needs(), task("old").Needs()}}),
			handle("b", nothing, backstage.Registration{Next: []backstage.Needs{mail, task("c").Needs()}, Aliases: []string{"old"}}))
		want := `level=INFO msg="next tasks that other workers must run" worker=` + r.last.Name() +
			` tasks="[c (queue \"default\") mail (queue \"post\")]"`
		if log := r.logs.String(); !strings.Contains(log, want) {
			r.Errorf("the log lacks %s:\n%s", want, log)
		}
		r.other().start(backstage.WorkerConfig{}, handle("b", nothing))
		if log := r.logs.String(); strings.Count(log, "next tasks") != 1 {
			r.Errorf("a worker without next tasks logs some:\n%s", log)
		}
	})
}

func TestWorkersAreNamedApart(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := r.newWorker(backstage.WorkerConfig{Name: "w"}, handle("a", nothing))
		b := r.newWorker(backstage.WorkerConfig{Name: "w"}, handle("a", nothing))
		if a.Name() == b.Name() || !strings.HasPrefix(a.Name(), "w-") {
			r.Errorf("two workers of one name are %q and %q, want different ones that begin with it", a.Name(), b.Name())
		}
	})
}

func TestABoundOfConcurrency(t *testing.T) {
	p, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = backstage.NewWorker(p, backstage.WorkerConfig{Concurrency: math.MaxInt})
	if err == nil || !strings.Contains(err.Error(), "Concurrency") {
		t.Errorf("a worker with %d handlers at once: %v; want an error that names Concurrency", math.MaxInt, err)
	}
}
