package backstage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// session is one Run of a worker.
//
// Lock order: session.mu is the only lock here and is never held while the
// provider, a handler or an observer is called.
type session struct {
	*Worker
	sub    provider.Subscription
	facts  provider.JobFacts
	byName map[string]*registered
	lanes  laneSet
	recent recent

	handlers      context.Context // of which handlers' contexts are made
	cancelHandler context.CancelCauseFunc
	settling      context.Context // of which settlements' contexts are made
	cancelSettle  context.CancelFunc
	cancelSoon    context.CancelFunc // of soon; not needed

	hooks   sync.WaitGroup // calls of OnStuck
	pool    sync.WaitGroup
	work    chan *execution // to idle goroutines of the pool
	quit    chan struct{}   // ends them
	cutOff  atomic.Int64    // deliveries whose settlement did not succeed
	changed chan struct{}   // a slot or a place became free

	mu       sync.Mutex
	active   []*execution          // deliveries that are not settled
	running  map[jobKey]*execution // those whose handler may run
	watched  map[<-chan struct{}]*watch
	busy     int        // slots in use
	suspect  *execution // the suspect that runs, or is about to
	suspects int        // suspects that are not settled
	fewer    *sync.Cond // there are fewer of them, or the worker stops
	stuck    int
	soon     context.Context    // of settlements that begin now; it ends by itself, or with settling
	soonFrom time.Time          // when it was made
	troubles map[string]error   // what health reports, by what it concerns
	parks    map[string]parkLog // by task
}

func newSession(w *Worker, byName map[string]*registered, lanes laneSet) *session {
	s := &session{
		Worker:   w,
		facts:    w.store.Jobs.Facts(),
		byName:   byName,
		lanes:    lanes,
		work:     make(chan *execution),
		quit:     make(chan struct{}),
		changed:  make(chan struct{}, 1),
		running:  make(map[jobKey]*execution),
		watched:  make(map[<-chan struct{}]*watch),
		troubles: make(map[string]error),
		parks:    make(map[string]parkLog),
	}
	s.recent.keep = 2 * w.cfg.Lease
	s.handlers, s.cancelHandler = context.WithCancelCause(context.Background())
	s.settling, s.cancelSettle = context.WithCancel(context.Background())
	s.fewer = sync.NewCond(&s.mu)
	context.AfterFunc(s.handlers, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fewer.Broadcast()
	})
	return s
}

// maxUnsettled bounds the deliveries that run or settle: a slot is free again
// when its handler returns, but a broker that does not settle must not make the
// worker take ever more.
func (s *session) maxUnsettled() int {
	if s.lanes.fixed {
		return s.cfg.Concurrency
	}
	return 2*s.cfg.Concurrency + 16
}

// run receives until ctx ends or the provider fails for good, then stops.
func (s *session) run(ctx context.Context) error {
	background, stopBackground := context.WithCancel(context.Background())
	defer stopBackground()
	cancelEvents := s.store.Events.Observe(s.providerReported)
	defer cancelEvents()

	var others sync.WaitGroup
	others.Go(func() { s.promote(background) })
	others.Go(func() { s.heartbeats(background) })

	failed := s.receive(ctx)
	err := s.stop()
	stopBackground()
	others.Wait()
	s.waitForHooks()
	return errors.Join(failed, err)
}

// receive takes deliveries while there are free slots. It returns nil when ctx
// has ended and an error when receiving failed for good.
func (s *session) receive(ctx context.Context) error {
	for {
		lanes, n := s.admit(ctx)
		if ctx.Err() != nil {
			return nil
		}
		deliveries, err := s.sub.Receive(ctx, lanes, n)
		for _, e := range s.arrive(deliveries) {
			if ctx.Err() != nil {
				s.giveBack(e)
				continue
			}
			s.take(e)
		}
		if err != nil && ctx.Err() == nil {
			err = s.store.named(err)
			s.trouble("receive", err)
			return fmt.Errorf("receive: %w", err)
		}
	}
}

// admit waits until a slot and a place are free, and returns the lanes to take
// from and the most to take. Where slots are fixed the provider keeps each lane to
// its own: a lane that is left out would not be asked for again when it has a free
// one, while the call waits for the others.
func (s *session) admit(ctx context.Context) (lanes []string, n int) {
	for {
		runtime.Gosched() // handlers that have returned give back their slots first: larger reads
		if lanes, n = s.free(); n > 0 {
			return lanes, n
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return nil, 0
		}
	}
}

func (s *session) free() (lanes []string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lanes = s.lanes.order()
	return lanes, min(s.cfg.Concurrency-s.busy, s.maxUnsettled()-len(s.active))
}

// take starts the life of a delivery with this worker.
func (s *session) take(e *execution) {
	select {
	case s.work <- e:
	default:
		s.pool.Go(func() { s.loop(e) })
	}
}

// loop is a goroutine of the pool. Goroutines are reused because the growth of
// their stacks is a good part of a short job's cost.
func (s *session) loop(e *execution) {
	for {
		s.live(e)
		select {
		case e = <-s.work:
		case <-s.quit:
			return
		}
	}
}

// giveBack releases a delivery that arrived while stopping.
func (s *session) giveBack(e *execution) {
	s.pool.Go(func() { s.finish(e, ending{how: stopped}) })
}

// arrive notes deliveries that are to be settled, and gives each a slot. All are
// noted before the first starts, so that a suspect knows of the others.
func (s *session) arrive(deliveries []provider.Delivery) []*execution {
	arrived := make([]*execution, len(deliveries))
	now := time.Now()
	for i, d := range deliveries {
		arrived[i] = s.newExecution(d, now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range arrived {
		e.index = len(s.active)
		s.active = append(s.active, e)
		s.busy++
		s.watch(e)
		s.countSuspect(e, s.suspected(e.job.Counters))
	}
	return arrived
}

// leaveSlot gives back the slot of a delivery whose handler has returned. Where
// slots are fixed, settling occupies it too.
func (s *session) leaveSlot(e *execution) {
	s.mu.Lock()
	s.freeSlot(e)
	s.mu.Unlock()
	s.signal()
}

func (s *session) freeSlot(e *execution) {
	if e.inSlot {
		e.inSlot = false
		s.busy--
	}
}

// leave ends the life of a delivery with this worker.
func (s *session) leave(e *execution) {
	s.mu.Lock()
	s.freeSlot(e)
	last := len(s.active) - 1
	s.active[e.index] = s.active[last]
	s.active[e.index].index = e.index
	s.active = s.active[:last]
	if s.running[e.key] == e {
		delete(s.running, e.key)
	}
	if e.stuck {
		s.stuck--
	}
	s.unwatch(e)
	s.countSuspect(e, false)
	ended := e.ended
	s.mu.Unlock()
	if ended != nil {
		close(ended)
	}
	s.signal()
}

func (s *session) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

const (
	// promoting is what health calls the promotion of delayed jobs.
	promoting = "promote delayed jobs"
	// promoterIsWell is how long a promoter must live to be taken for well.
	promoterIsWell = 2 * time.Second
)

var errPromoterEnded = errors.New("the promoter ended by itself")

// promote keeps delayed jobs moving, starting again after a failure.
func (s *session) promote(ctx context.Context) {
	if s.store.Delays == nil {
		return
	}
	var publish provider.Publish
	if s.store.delaysLent() {
		publish = s.store.promoted
	}
	for failures := int32(0); ctx.Err() == nil; failures++ {
		began := time.Now()
		well := time.AfterFunc(promoterIsWell, func() { s.trouble(promoting, nil) })
		err := s.store.Delays.Promote(ctx, publish)
		well.Stop()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errPromoterEnded
		}
		if time.Since(began) > time.Minute {
			failures = 0
		}
		err = s.store.named(err)
		s.trouble(promoting, err)
		s.observe(PromoterFailed{Err: err})
		s.cfg.Logger.Error("delayed jobs are not promoted, trying again", "error", err)
		sleep(ctx, growing(100*time.Millisecond, 10*time.Second, failures))
	}
}

// trouble records what health reports; a nil error takes it back.
func (s *session) trouble(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.troubles, what)
		return
	}
	s.troubles[what] = err
}

func (s *session) health() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, what := range slices.Sorted(maps.Keys(s.troubles)) {
		errs = append(errs, fmt.Errorf("%s: %w", what, s.troubles[what]))
	}
	if s.stuck > 0 && 2*s.stuck >= s.cfg.Concurrency {
		errs = append(errs, fmt.Errorf("%d of %d handlers are stuck", s.stuck, s.cfg.Concurrency))
	}
	return errors.Join(errs...)
}
