package backstage

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// shift is one Run of a worker.
//
// Lock order: shift.mu is the only lock here and is never held while the
// provider, a handler or an observer is called.
type shift struct {
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
	promoted map[jobKey]<-chan struct{} // jobs that a lender has not forgotten yet, and when it has
	busy     int                        // slots in use
	suspect  *execution                 // the suspect that runs, or is about to
	suspects int                        // suspects that are not settled
	fewer    *sync.Cond                 // there are fewer of them, or the worker stops
	stuck    int
	soon     context.Context    // of settlements that begin now; it ends by itself, or with settling
	soonFrom time.Time          // when it was made
	troubles map[string]error   // what health reports, by what it concerns
	parks    map[string]parkLog // by task
}

func newShift(w *Worker, byName map[string]*registered, lanes laneSet) *shift {
	s := &shift{
		Worker:   w,
		facts:    w.broker.Jobs.Facts(),
		byName:   byName,
		lanes:    lanes,
		work:     make(chan *execution),
		quit:     make(chan struct{}),
		changed:  make(chan struct{}, 1),
		running:  make(map[jobKey]*execution),
		watched:  make(map[<-chan struct{}]*watch),
		promoted: make(map[jobKey]<-chan struct{}),
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

// run receives until ctx ends or the provider fails for good, then stops.
func (s *shift) run(ctx context.Context) error {
	background, stopBackground := context.WithCancel(context.Background())
	defer stopBackground()
	cancelEvents := s.broker.Events.Observe(s.providerReported)
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
