package providertest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func orderChecks() []check {
	return []check{
		{
			name:  "order/one at a time",
			rule:  "JobFacts.Ordered says that jobs with one ordering key run one at a time, in order, on all workers together.",
			needs: []need{needOrder},
			run:   orderOne,
		}, {
			name:  "order/of one call",
			rule:  "Jobs of one call that share a queue and an ordering key keep their order.",
			needs: []need{needOrder},
			run:   orderCall,
		}, {
			name:  "order/keys are apart",
			rule:  "OrderingKey orders jobs within their queue: neither other keys nor other queues wait, but other tasks of the key do.",
			needs: []need{needOrder},
			run:   orderApart,
		}, {
			name:  "order/retry keeps its place",
			rule:  "A job with an ordering key keeps its place in its key: while one waits for a retry the later ones of its key wait, and others do not.",
			needs: []need{needOrder, needOrderedRetry},
			run:   orderRetry,
		}, {
			name:  "order/release keeps its place",
			rule:  "A job with an ordering key that is released keeps its place in its key.",
			needs: []need{needOrder},
			run:   orderRelease,
		}, {
			name:  "order/dead frees the key",
			rule:  "A dead-lettered job frees its ordering key.",
			needs: []need{needOrder},
			run:   orderDead,
		}, {
			name:  "order/crash keeps its place",
			rule:  "A job with an ordering key keeps its place in its key when its worker dies.",
			needs: []need{needOrder, needCrash},
			run:   orderCrash,
		}, {
			name:  "order/next jobs join at the end",
			rule:  "Jobs of a queue with one key start in the order in which they entered the queue; next jobs enter it when their parent is acknowledged.",
			needs: []need{needOrder},
			run:   orderNext,
		}, {
			name:  "order/delayed enters when due",
			rule:  "A delayed job enters its key when it is due, and holds up nobody before.",
			needs: []need{needOrder, needDelays},
			run:   orderDelayed,
		}, {
			name:  "order/refused",
			rule:  "Where JobFacts.Ordered is false a job with an ordering key is refused.",
			needs: []need{needNoOrder},
			run:   orderRefused,
		},
	}
}

func needNoOrder(t *env) string {
	if t.facts().Ordered {
		return "absent: the provider keeps order (JobFacts.Ordered)"
	}
	return ""
}

func needOrderedRetry(t *env) string {
	if t.retries(true) {
		return ""
	}
	return "absent: the provider does not retry an ordered job by itself (JobFacts.Retries)"
}

// keyLog watches how the jobs of keys run.
type keyLog struct {
	t       *env
	mu      sync.Mutex
	running map[string]string
	ran     map[string][]string
}

func newKeyLog(t *env) *keyLog {
	return &keyLog{t: t, running: make(map[string]string), ran: make(map[string][]string)}
}

// begin notes a start and reports it if the key has another job running.
func (l *keyLog) begin(j *provider.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if beside := l.running[j.OrderingKey]; beside != "" {
		l.t.Errorf("%s started while %s of the same key was running", j.ID, beside)
	}
	l.running[j.OrderingKey] = j.ID
	l.ran[j.OrderingKey] = append(l.ran[j.OrderingKey], j.ID)
}

func (l *keyLog) end(j *provider.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, j.OrderingKey)
}

func orderOne(t *env) {
	const keys, each = 6, 8
	want := make(map[string][]string)
	for n := range each {
		for k := range keys {
			j := t.job(work, ordered(fmt.Sprintf("key-%d", k)))
			want[j.OrderingKey] = append(want[j.OrderingKey], j.ID)
			t.publish(t.p, j)
			if n%3 == 0 {
				t.publish(t.p, t.job(work)) // those without a key mix in
			}
		}
	}
	unordered := keys * ((each + 2) / 3)
	log := newKeyLog(t)
	ctx, cancel := t.ctx()
	defer cancel()
	var left sync.WaitGroup
	left.Add(keys*each + unordered)
	for _, p := range []*provider.Provider{t.p, t.open()} {
		w := t.subscribe(p, 5, work)
		slots := make(chan struct{}, 5)
		t.start(func() {
			for ctx.Err() == nil {
				slots <- struct{}{}
				ds, err := w.Receive(ctx, w.lanes, 1)
				if err != nil && ctx.Err() == nil {
					t.Errorf("Receive: %v", err)
					return
				}
				for _, d := range ds {
					if d.Job().OrderingKey != "" {
						log.begin(d.Job())
					}
					t.start(func() {
						time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
						log.end(d.Job())
						if err := d.Ack(t.Context(), nil); err != nil {
							t.Errorf("Ack: %v", err)
						}
						<-slots
						left.Done()
					})
				}
				if len(ds) == 0 {
					<-slots
				}
			}
		})
	}
	t.wait("all jobs ran", &left)
	cancel()
	for key, ids := range want {
		if fmt.Sprint(log.ran[key]) != fmt.Sprint(ids) {
			t.Errorf("%s ran as\n     %v\nwant %v", key, log.ran[key], ids)
		}
	}
}

// wait waits for a group with patience.
func (t *env) wait(what string, wg *sync.WaitGroup) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(t.patience):
		t.Fatalf("not within %v: %s", t.patience, what)
	}
}

// inOrder checks that the next deliveries are these jobs, one at a time.
func (t *env) inOrder(w *sub, jobs ...provider.Job) {
	t.Helper()
	for i, j := range jobs {
		d := w.one()
		if d.Job().ID != j.ID {
			t.Errorf("delivery %d of the key is %s; want %s", i+1, d.Job().ID, j.ID)
		}
		w.nothing("the key has a job running")
		t.ack(d)
	}
}

func orderCall(t *env) {
	jobs := t.some(6, work, ordered("a"))
	t.publish(t.p, jobs...)
	t.inOrder(t.subscribe(t.p, 10, work), jobs...)
}

func orderApart(t *env) {
	a1, a2 := t.job(work, ordered("a")), t.job(work, ordered("a"))
	a2.Task = "providertest.v1.Tasks.Another"
	t.publish(t.p, a1, a2, t.job(work, ordered("b")), t.job(other, ordered("a")), t.job(work))
	w := t.subscribe(t.p, 10, work, other)
	ds := w.receive(4)
	got := byID(ds)
	if got[a1.ID] == nil || got[a2.ID] != nil {
		t.Errorf("started together: %s; want the first of the key and not the second", names(ds))
	}
	w.nothing("the first of its key is running")
	t.ack(ds...)
	t.inOrder(w, a2)
}

func orderRetry(t *env) {
	t.promoteOwn()
	jobs := t.some(3, work, ordered("a"))
	t.publish(t.p, jobs...)
	w := t.subscribe(t.p, 10, work)
	d := w.one()
	start := time.Now()
	t.retry(d, provider.Again{Why: provider.FailedAgain, After: 2 * time.Second, Failure: failure(1)})
	free := t.job(work, ordered("b"))
	t.publish(t.p, free)
	b := w.one()
	if b.Job().ID != free.ID {
		t.Errorf("%s was delivered while the first of its key waits for a retry", b.Job().ID)
	}
	t.ack(b)
	d = w.one()
	t.notEarly(d, start, 2*time.Second)
	if d.Job().ID != jobs[0].ID || d.Job().Counters.Failures != 1 {
		t.Errorf("%s with %+v came; want the retry of %s", d.Job().ID, d.Job().Counters, jobs[0].ID)
	}
	w.nothing("the key has a job running")
	t.ack(d)
	t.inOrder(w, jobs[1:]...)
}

func orderRelease(t *env) {
	jobs := t.some(3, work, ordered("a"))
	t.publish(t.p, jobs...)
	first := t.subscribe(t.p, 1, work)
	t.release(first.one())
	first.end()
	t.inOrder(t.subscribe(t.open(), 10, work), jobs...)
}

func orderDead(t *env) {
	jobs := t.some(3, work, ordered("a"))
	t.publish(t.p, jobs...)
	w := t.subscribe(t.p, 10, work)
	t.deadLetter(w.one(), failure(1))
	t.inOrder(w, jobs[1:]...)
}

func orderCrash(t *env) {
	jobs := t.some(3, work, ordered("a"))
	t.publish(t.p, jobs...)
	doomed := t.open()
	t.subscribeFor(doomed, t.h.Lease, 1, work).one()
	t.die(doomed)
	t.inOrder(t.subscribe(t.p, 10, work), jobs...)
}

func orderNext(t *env) {
	a1, a2 := t.job(work, ordered("a")), t.job(work, ordered("a"))
	t.publish(t.p, a1, a2)
	w := t.subscribe(t.p, 10, work)
	next := t.some(2, work, ordered("a"))
	t.ackWith(w.one(), next...)
	t.inOrder(w, append([]provider.Job{a2}, next...)...)
}

func orderDelayed(t *env) {
	late := t.job(work, ordered("a"), delayed(2*time.Second))
	t.hold(t.p, late)
	t.promote(t.p)
	early := t.job(work, ordered("a"))
	t.publish(t.p, early)
	t.inOrder(t.subscribe(t.p, 10, work), early, late)
}

func orderRefused(t *env) {
	t.outcome("Publish of a job with an ordering key", t.tryPublish(t.p, t.job(work, ordered("a")))[0], provider.OutcomeRefused)
	t.subscribe(t.p, 1, work).nothing("it was refused")
}
