package embedded

import (
	"context"
	"sync/atomic"
	"time"
)

// request is one call that waits for the writer. It is embedded in what the call
// wants, a piece.
type request struct {
	state atomic.Int32
	done  chan struct{} // receives the answer
	err   error         // read after done
}

// The states of a request. Queued ones may be taken by the writer or abandoned by
// their caller, whoever is first; an abandoned one has not been done. One that the
// writer has taken is answered or queued again; its caller may leave it alone, and
// then does not know.
const (
	queued int32 = iota
	taken
	answered
	abandoned
	orphaned
)

// newRequest uses a channel of one that has been answered, because a channel is
// as large as all the rest of a call.
func (w *writer) newRequest() request {
	if done, ok := w.answered.Get().(chan struct{}); ok {
		return request{done: done}
	}
	return request{done: make(chan struct{}, 1)}
}

// await waits for the answer until ctx ends.
func (w *writer) await(ctx context.Context, r *request) fate {
	became := r.await(ctx, patience)
	if became == fateAnswered {
		w.answered.Put(r.done)
	}
	return became
}

func (r *request) base() *request { return r }

// take reports whether the writer may work on it.
func (r *request) take() bool { return r.state.CompareAndSwap(queued, taken) }

// answer gives the request back to its caller, and reports whether the caller is
// still there.
func (r *request) answer(err error) bool {
	r.err = err
	if !r.state.CompareAndSwap(taken, answered) {
		return false
	}
	r.done <- struct{}{}
	return true
}

// standBy puts it back, and reports whether its caller is still there.
func (r *request) standBy() bool { return r.state.CompareAndSwap(taken, queued) }

// fate is what became of a request, as its caller knows.
type fate int

const (
	fateAnswered  fate = iota
	fateAbandoned      // nothing of it was done
	fateUnknown        // it is being done
)

// await waits for the answer until ctx ends. Work that the writer has begun then
// is waited for a little longer.
func (r *request) await(ctx context.Context, patience time.Duration) fate {
	select {
	case <-r.done:
		return fateAnswered
	case <-ctx.Done():
	}
	giveUp := time.NewTimer(patience)
	defer giveUp.Stop()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !r.state.CompareAndSwap(queued, abandoned) {
		select {
		case <-r.done:
			return fateAnswered
		case <-again.C:
		case <-giveUp.C:
			if r.state.CompareAndSwap(taken, orphaned) {
				return fateUnknown
			}
		}
	}
	return fateAbandoned
}

// piece is one call's wish, as the writer sees it.
type piece interface {
	base() *request
	// finish is called by the writer with the outcome of the transaction in which
	// it was: with nil, what it staged is on record.
	finish(w *writer, err error)
	// light reports whether it needs no room in the file, only gives it back.
	light() bool
}

// errand is a wish that needs nothing of the others.
type errand struct {
	request
	run   func(t *transaction) error // may be called again after a rollback
	own   error
	frees bool
}

func (e *errand) light() bool { return e.frees }

func (e *errand) finish(_ *writer, err error) {
	if err == nil {
		err = e.own
	}
	e.answer(err)
}

func (w *writer) newErrand(run func(t *transaction) error) *errand {
	return &errand{request: w.newRequest(), run: run}
}

// do runs an errand. Its results may be read after a nil error only, and after an
// error of its own.
func (w *writer) do(ctx context.Context, run func(t *transaction) error) error {
	return w.send(ctx, w.newErrand(run))
}

// doFreeing is do for what only gives room back.
func (w *writer) doFreeing(ctx context.Context, run func(t *transaction) error) error {
	e := w.newErrand(run)
	e.frees = true
	return w.send(ctx, e)
}

func (w *writer) send(ctx context.Context, e *errand) error {
	_, err := w.sendKnowing(ctx, e)
	return err
}

// sendKnowing also says what became of the errand.
func (w *writer) sendKnowing(ctx context.Context, e *errand) (fate, error) {
	if err := ctx.Err(); err != nil {
		return fateAbandoned, err
	}
	if err := w.submit(e); err != nil {
		return fateAbandoned, err
	}
	became := w.await(ctx, &e.request)
	if became != fateAnswered {
		return became, w.whyLate(ctx)
	}
	return became, e.err
}

// patience is how long a call whose context has ended waits for the transaction
// that it is in.
const patience = 250 * time.Millisecond
