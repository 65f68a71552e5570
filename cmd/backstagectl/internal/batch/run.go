package batch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// MaxStep is the most letters that are replayed or discarded in one call, and so
// the most of which an interrupted run does not know what became of them.
const MaxStep = 100

// Run does a plan's action to its letters.
type Run struct {
	// Dead is where the letters are.
	Dead provider.DeadLetters
	// Plan is what is to be done.
	Plan *Plan
	// Journal keeps progress. Nil: nothing does.
	Journal *Journal
	// Rate is the most letters a second. Zero: as many as the broker takes.
	Rate float64
	// Timeout bounds each call to the broker.
	Timeout time.Duration
	// Report is told what became of letters, a step at a time. Those that an earlier
	// run of the journal has done are not reported.
	Report func([]Result)
}

// Do does it. It returns early when ctx ends, between two steps, and when a call as
// a whole fails; then the letters that are left stay untried. The error says why it
// ended early.
func (r *Run) Do(ctx context.Context) error {
	left := r.left()
	next := time.Now()
	for len(left) > 0 {
		if err := sleepUntil(ctx, next); err != nil {
			return fmt.Errorf("interrupted with %d letters left", len(left))
		}
		step := left[:min(len(left), r.step())]
		left = left[len(step):]
		next = r.after(next, len(step))
		results, failed := r.do(ctx, step)
		if r.Journal != nil {
			if err := r.Journal.Record(results); err != nil {
				failed = errors.Join(failed, err)
			}
		}
		r.Report(results)
		if failed != nil {
			return failed
		}
	}
	return nil
}

// left returns the letters that no earlier run has done.
func (r *Run) left() []Letter {
	if r.Journal == nil {
		return r.Plan.Letters
	}
	var left []Letter
	for _, l := range r.Plan.Letters {
		if !r.Journal.Results[l.Address].Outcome.Final() {
			left = append(left, l)
		}
	}
	return left
}

// step is how many letters go into one call: a tenth of a second's, so that a rate is
// a rate and not a burst a second.
func (r *Run) step() int {
	if r.Rate <= 0 {
		return MaxStep
	}
	return max(1, min(MaxStep, int(r.Rate/10)))
}

// after returns when the next step may begin. What was lost by a slow call is not
// made up for: the queue would get it all at once.
func (r *Run) after(begun time.Time, n int) time.Time {
	if r.Rate <= 0 {
		return begun
	}
	if now := time.Now(); now.After(begun) {
		begun = now
	}
	return begun.Add(time.Duration(float64(n) / r.Rate * float64(time.Second)))
}

func sleepUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return ctx.Err()
	}
}

// do does one step. It is not interrupted: what was begun is waited for.
func (r *Run) do(ctx context.Context, step []Letter) ([]Result, error) {
	ctx = context.WithoutCancel(ctx)
	results := make([]Result, 0, len(step))
	var take []string
	for _, l := range step {
		result, ok, err := r.look(ctx, l)
		if err != nil {
			return results, err
		}
		if ok {
			take = append(take, l.Address)
		} else {
			results = append(results, result)
		}
	}
	if len(take) == 0 {
		return results, nil
	}
	taken, err := r.take(ctx, take)
	return append(results, taken...), err
}

// look reads a letter again. It reports whether it is the one that was planned, and
// may be taken; the result is what it is instead.
func (r *Run) look(ctx context.Context, l Letter) (Result, bool, error) {
	result := Result{Address: l.Address, Outcome: Refused}
	found, err := r.get(ctx, l.Address)
	switch {
	case errors.Is(err, provider.ErrNotFound), err == nil && !l.is(&found):
		result.Outcome = Gone
	case err != nil:
		return result, false, fmt.Errorf("read dead letter %q: %w", l.Address, err)
	case r.Plan.Action == Discard:
		return result, true, nil
	case found.Raw != nil:
		result.Error = "it is no job record, which no worker could run; it can only be discarded"
	case found.Job.Format > provider.Format:
		result.Error = fmt.Sprintf("its record has format %d, and this program knows %d: use the backstagectl of a newer version", found.Job.Format, provider.Format)
	default:
		return result, true, nil
	}
	return result, false, nil
}

func (r *Run) get(ctx context.Context, address string) (provider.DeadLetter, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	return r.Dead.Get(ctx, address)
}

// take replays or discards letters.
func (r *Run) take(ctx context.Context, addresses []string) ([]Result, error) {
	call := r.Dead.Replay
	if r.Plan.Action == Discard {
		call = r.Dead.Discard
	}
	within, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	stored, err := call(within, addresses...)
	results := make([]Result, len(addresses))
	for i, address := range addresses {
		answer := provider.Stored{Err: err}
		if i < len(stored) {
			answer = stored[i]
		}
		results[i] = resultOf(r.Plan.Action, address, answer)
	}
	r.settle(ctx, results)
	if err != nil {
		err = fmt.Errorf("%s dead letters: %w", r.Plan.Action, err)
	}
	return results, err
}

// settle looks after letters whose outcome is unknown: it was done to one that is no
// longer there. It gives up with the first that cannot be read.
func (r *Run) settle(ctx context.Context, results []Result) {
	for i := range results {
		if results[i].Outcome != Unknown {
			continue
		}
		_, err := r.get(ctx, results[i].Address)
		switch {
		case errors.Is(err, provider.ErrNotFound):
			results[i] = Result{Address: results[i].Address, Outcome: r.Plan.Action.Done()}
		case err != nil:
			return
		}
	}
}
