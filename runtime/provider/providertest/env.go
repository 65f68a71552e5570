package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

const (
	// quiet is how long a check looks for what must not happen. It is short: too
	// short a look misses a fault, and never reports one that is not there.
	quiet = 300 * time.Millisecond
	// takeOver is what a dead worker's jobs may need beyond their lease.
	takeOver = 5 * time.Second
	// longLease is for checks that are not about leases. It is longer than they
	// are patient.
	longLease = 2 * time.Minute
)

// The queues of most checks.
const (
	work  = "work"
	other = "other"
)

// env is what a check works with: a storage, a provider opened on it, and verbs
// that fail the check when they do not succeed.
type env struct {
	reporter
	round round
	h     Harness
	p     *provider.Provider // opened already

	// patience bounds every wait for something that must happen. It is long,
	// because a slow machine is not a broken provider.
	patience time.Duration

	count atomic.Int64
}

func newEnv(t reporter, r round, h Harness) *env {
	e := &env{reporter: t, round: r, h: h, patience: h.Patience}
	if e.patience == 0 {
		e.patience = time.Minute
	}
	e.p = e.open()
	return e
}

// open opens the storage once more, as another process does.
func (t *env) open() *provider.Provider {
	t.Helper()
	p, err := t.h.Open()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.closeAtEnd(p)
	if t.round == lent {
		l := t.openLender()
		p.Delays, p.Claims = l.Lend("providertest")
	}
	return p
}

// openLender opens the storage that lends.
func (t *env) openLender() *provider.Provider {
	t.Helper()
	l, err := t.h.Lender()
	if err != nil {
		t.Fatalf("open the lender: %v", err)
	}
	t.closeAtEnd(l)
	return l
}

func (t *env) closeAtEnd(p *provider.Provider) {
	t.Cleanup(func() {
		ctx, cancel := t.after()
		defer cancel()
		_ = p.Close(ctx)
	})
}

// ctx returns a context for one call that must succeed in the end.
func (t *env) ctx() (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), t.patience)
}

// after returns a context for clearing up, when the test's own has ended.
func (t *env) after() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.Context()), t.patience)
}

func (t *env) facts() provider.JobFacts { return t.p.Jobs.Facts() }

// retries reports whether Delivery.Retry may be called.
func (t *env) retries(ordered bool) bool {
	if t.p.Delays != nil && t.round == own {
		return true
	}
	switch t.facts().Retries {
	case provider.RetriesAll:
		return true
	case provider.RetriesOrdered:
		return ordered
	}
	return false
}

// finest is how early a held job may be.
func (t *env) finest() time.Duration {
	if t.p.Delays == nil {
		return 0
	}
	return t.p.Delays.Facts().Finest
}

// job makes a job with an id of its own.
func (t *env) job(queue string, with ...func(*provider.Job)) provider.Job {
	n := t.count.Add(1)
	now := time.Unix(0, time.Now().UnixNano())
	j := provider.Job{
		ID:       fmt.Sprintf("job-%05d", n),
		Task:     "providertest.v1.Tasks.Work",
		Queue:    queue,
		Payload:  fmt.Appendf(nil, "\x00\xff payload %d", n),
		Enqueued: now,
		FirstDue: now,
	}
	for _, f := range with {
		f(&j)
	}
	return j
}

// some makes n jobs.
func (t *env) some(n int, queue string, with ...func(*provider.Job)) []provider.Job {
	jobs := make([]provider.Job, n)
	for i := range jobs {
		jobs[i] = t.job(queue, with...)
	}
	return jobs
}

func ordered(key string) func(*provider.Job) {
	return func(j *provider.Job) { j.OrderingKey = key }
}

func delayed(d time.Duration) func(*provider.Job) {
	return func(j *provider.Job) { j.Delay, j.FirstDue = d, j.Enqueued.Add(d) }
}

func deduped(key string, d time.Duration) func(*provider.Job) {
	return func(j *provider.Job) { j.Dedupe = provider.Dedupe{Key: key, For: d} }
}

func untilDone(key string) func(*provider.Job) {
	return func(j *provider.Job) { j.Dedupe = provider.Dedupe{Key: key, UntilDone: true} }
}

func withID(id string) func(*provider.Job) { return func(j *provider.Job) { j.ID = id } }

// tryPublish publishes as a client and returns what became of the jobs.
func (t *env) tryPublish(p *provider.Provider, jobs ...provider.Job) []provider.Stored {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	stored := p.Jobs.Publish(ctx, jobs, provider.PublishOptions{})
	t.answers("Publish", jobs, stored)
	return stored
}

// publish publishes jobs that must be stored.
func (t *env) publish(p *provider.Provider, jobs ...provider.Job) {
	t.Helper()
	t.stored("Publish", t.tryPublish(p, jobs...))
}

// answers checks that there is one answer for each job, in order.
func (t *env) answers(call string, jobs []provider.Job, stored []provider.Stored) {
	t.Helper()
	if len(stored) != len(jobs) {
		t.Fatalf("%s of %d jobs gave %d answers", call, len(jobs), len(stored))
	}
	for i, s := range stored {
		if s.ID != jobs[i].ID {
			t.Fatalf("%s: answer %d is for job %q, not for %q", call, i, s.ID, jobs[i].ID)
		}
	}
}

// stored checks that all outcomes are OutcomeStored.
func (t *env) stored(call string, stored []provider.Stored) {
	t.Helper()
	for i, s := range stored {
		if s.Outcome != provider.OutcomeStored {
			t.Fatalf("%s: job %d (%s): %s, %v; want stored", call, i, s.ID, s.Outcome, s.Err)
		}
	}
}

// outcome checks one answer.
func (t *env) outcome(what string, s provider.Stored, want provider.Outcome) {
	t.Helper()
	if s.Outcome != want {
		t.Errorf("%s: %s (holder %q, error %v); want %s", what, s.Outcome, s.Holder, s.Err, want)
	}
}

// hold holds jobs that must be stored.
func (t *env) hold(p *provider.Provider, jobs ...provider.Job) {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	stored := p.Delays.Hold(ctx, jobs)
	t.answers("Hold", jobs, stored)
	t.stored("Hold", stored)
}

// start runs f in a goroutine that ends before the check does, at the latest soon
// after the check's context.
func (t *env) start(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	t.Cleanup(func() { <-done })
}

// promote promotes what is due until the check ends.
func (t *env) promote(p *provider.Provider) { t.promoteWith(p, t.publisher(p)) }

// publisher is how due jobs reach the queues: nil for the store's own.
func (t *env) publisher(p *provider.Provider) provider.Publish {
	if t.round == own {
		return nil
	}
	return func(ctx context.Context, jobs []provider.Job) []provider.Stored {
		return p.Jobs.Publish(ctx, jobs, provider.PublishOptions{Accepted: true})
	}
}

// promoteWith promotes until the returned function is called, or the check ends.
func (t *env) promoteWith(p *provider.Provider, publish provider.Publish) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.Delays.Promote(ctx, publish); err != nil && !errors.Is(err, provider.ErrClosed) {
			t.Errorf("Promote: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

// sub is a subscription with verbs that fail the check.
type sub struct {
	provider.Subscription
	t     *env
	lanes []string
}

// subscribe subscribes with a lease that does not run out during a check.
func (t *env) subscribe(p *provider.Provider, slots int, lanes ...string) *sub {
	t.Helper()
	return t.subscribeFor(p, max(longLease, 2*t.patience, t.h.Lease), slots, lanes...)
}

// subscribeFor subscribes with a lease and a number of slots for each lane. A
// broker with fixed slots may hand out that many before they are asked for, so a
// check that wants others to have jobs says here what it will take.
func (t *env) subscribeFor(p *provider.Provider, lease time.Duration, slots int, lanes ...string) *sub {
	t.Helper()
	ctx, cancel := t.ctx()
	t.Cleanup(cancel) // that a subscription outlives it is one check's business
	s, err := p.Jobs.Subscribe(ctx, t.options(lease, slots, lanes...))
	if err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := t.after()
		defer cancel()
		_ = s.Close(ctx)
	})
	return &sub{Subscription: s, t: t, lanes: lanes}
}

func (t *env) options(lease time.Duration, slots int, lanes ...string) provider.SubscribeOptions {
	opts := provider.SubscribeOptions{
		Worker:       fmt.Sprintf("worker-%d-%d", os.Getpid(), t.count.Add(1)),
		MaxUnsettled: slots * len(lanes),
		Lease:        lease,
	}
	for _, lane := range lanes {
		opts.Lanes = append(opts.Lanes, provider.Lane{Queue: lane, Slots: slots})
	}
	return opts
}

// receive takes n deliveries from all lanes.
func (s *sub) receive(n int) []provider.Delivery {
	s.t.Helper()
	return s.receiveFrom(n, s.lanes...)
}

// one takes one delivery.
func (s *sub) one() provider.Delivery {
	s.t.Helper()
	return s.receive(1)[0]
}

// receiveFrom takes n deliveries from some lanes.
func (s *sub) receiveFrom(n int, lanes ...string) []provider.Delivery {
	s.t.Helper()
	ctx, cancel := s.t.ctx()
	defer cancel()
	var got []provider.Delivery
	for len(got) < n {
		ds, err := s.Receive(ctx, lanes, n-len(got))
		s.t.batch(ds, n-len(got))
		got = append(got, ds...)
		if err != nil && len(got) < n {
			s.t.Fatalf("Receive: %v; %d of %d deliveries came: %s", err, len(got), n, names(got))
		}
		if ctx.Err() != nil && len(got) < n {
			s.t.Fatalf("%d of %d deliveries came within %v: %s", len(got), n, s.t.patience, names(got))
		}
	}
	return got
}

// batch checks what every Receive must keep to.
func (t *env) batch(ds []provider.Delivery, most int) {
	t.Helper()
	if len(ds) > most {
		t.Fatalf("Receive gave %d deliveries; at most %d were asked for", len(ds), most)
	}
	for _, d := range ds {
		if d == nil || d.Job() == nil {
			t.Fatalf("Receive gave a delivery without a job")
		}
	}
}

// during returns all that is delivered within some time, perhaps nothing. It
// leaves early when most have come.
func (s *sub) during(d time.Duration, most int) []provider.Delivery {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	var got []provider.Delivery
	for len(got) < most && ctx.Err() == nil {
		ds, err := s.Receive(ctx, s.lanes, most-len(got))
		s.t.batch(ds, most-len(got))
		got = append(got, ds...)
		if err != nil && ctx.Err() == nil {
			s.t.Fatalf("Receive: %v", err)
		}
	}
	return got
}

// nothing checks that nothing is delivered for a while.
func (s *sub) nothing(why string) {
	s.t.Helper()
	s.nothingFor(quiet, why)
}

func (s *sub) nothingFor(d time.Duration, why string) {
	s.t.Helper()
	if got := s.during(d, 1); len(got) > 0 {
		s.t.Errorf("%s was delivered (%+v); want nothing: %s", got[0].Job().ID, got[0].Job().Counters, why)
	}
}

// end closes the subscription.
func (s *sub) end() {
	s.t.Helper()
	ctx, cancel := s.t.ctx()
	defer cancel()
	if err := s.Close(ctx); err != nil {
		s.t.Errorf("Subscription.Close: %v", err)
	}
}

// ack acknowledges deliveries.
func (t *env) ack(ds ...provider.Delivery) {
	t.Helper()
	for _, d := range ds {
		t.ackWith(d)
	}
}

// ackWith acknowledges a delivery with next jobs.
func (t *env) ackWith(d provider.Delivery, next ...provider.Job) {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	if err := d.Ack(ctx, next); err != nil {
		t.Fatalf("Ack of %s with %d next jobs: %v", d.Job().ID, len(next), err)
	}
}

func (t *env) retry(d provider.Delivery, again provider.Again) {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	if err := d.Retry(ctx, again); err != nil {
		t.Fatalf("Retry of %s: %v", d.Job().ID, err)
	}
}

func (t *env) deadLetter(d provider.Delivery, f provider.Failure) {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	if err := d.DeadLetter(ctx, f); err != nil {
		t.Fatalf("DeadLetter of %s: %v", d.Job().ID, err)
	}
}

func (t *env) release(d provider.Delivery) {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	if err := d.Release(ctx); err != nil {
		t.Fatalf("Release of %s: %v", d.Job().ID, err)
	}
}

func (t *env) extend(s *sub, ds ...provider.Delivery) []error {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	errs := s.Extend(ctx, ds)
	if len(errs) != len(ds) {
		t.Fatalf("Extend of %d deliveries gave %d answers", len(ds), len(errs))
	}
	return errs
}

// failure is a run that failed.
func failure(attempt int32) provider.Failure {
	return provider.Failure{
		At:      time.Unix(0, time.Now().UnixNano()),
		Class:   provider.ClassFailed,
		Message: fmt.Sprintf("run %d failed", attempt),
		Worker:  "providertest",
		Attempt: attempt,
		Detail:  "a stack",
	}
}

// until waits until a condition holds.
func (t *env) until(what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(t.patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", t.patience, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// same checks that a delivered job is the one that was stored.
func (t *env) same(what string, got, want *provider.Job) {
	t.Helper()
	if !bytes.Equal(t.bytes(got), t.bytes(want)) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, *got, *want)
	}
	if got.Delay != 0 {
		t.Errorf("%s: it has a delay of %v still", what, got.Delay)
	}
}

func (t *env) bytes(j *provider.Job) []byte {
	t.Helper()
	b, err := provider.Marshal(j)
	if err != nil {
		t.Fatalf("Marshal: %v", err)
	}
	return b
}

// names lists what was delivered, for messages.
func names(ds []provider.Delivery) string {
	ids := make([]string, len(ds))
	for i, d := range ds {
		ids[i] = d.Job().ID
	}
	return strings.Join(ids, ", ")
}

// tally counts deliveries by job.
func tally(ds []provider.Delivery) map[string]int {
	n := make(map[string]int)
	for _, d := range ds {
		n[d.Job().ID]++
	}
	return n
}

// byID finds the delivery of a job.
func byID(ds []provider.Delivery) map[string]provider.Delivery {
	m := make(map[string]provider.Delivery)
	for _, d := range ds {
		m[d.Job().ID] = d
	}
	return m
}
