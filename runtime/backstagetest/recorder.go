package backstagetest

import (
	"context"
	"sync"

	"github.com/backstage-go/backstage/runtime"
)

// Recorder is a backstage.Enqueuer that stores nothing and remembers every valid
// job, in order. Jobs that a client would refuse for what is wrong with them are
// refused here too. The zero value is ready for use, by many goroutines at once.
type Recorder struct {
	mu     sync.Mutex
	jobs   []backstage.Job
	answer func(backstage.Job) (backstage.Receipt, error)
}

// Enqueue records the jobs and answers that they are stored, or what Answer says.
func (r *Recorder) Enqueue(_ context.Context, jobs ...backstage.Job) ([]backstage.Receipt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	receipts := make([]backstage.Receipt, len(jobs))
	var failed error
	for i, job := range jobs {
		receipts[i] = r.receipt(job)
		if failed == nil {
			failed = receipts[i].Err
		}
	}
	if failed == nil {
		r.jobs = append(r.jobs, jobs...)
	}
	return receipts, failed
}

// Check finds nothing missing.
func (r *Recorder) Check(...backstage.Needs) error { return nil }

// Answer lets the recorder answer later jobs as f says: with a duplicate's
// receipt, or with an error, which is put into a *backstage.EnqueueError. The
// jobs of a call for which f returns an error are not recorded. A nil f answers
// that jobs are stored.
func (r *Recorder) Answer(f func(backstage.Job) (backstage.Receipt, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

// Jobs returns what was recorded since the last call of Reset.
func (r *Recorder) Jobs() []backstage.Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]backstage.Job(nil), r.jobs...)
}

// Reset forgets what was recorded.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs = nil
}

func (r *Recorder) receipt(job backstage.Job) backstage.Receipt {
	receipt, err := backstage.Receipt{ID: job.ID(), Outcome: backstage.Stored}, job.Err()
	if err == nil && r.answer != nil {
		receipt, err = r.answer(job)
	}
	if err != nil {
		receipt.ID, receipt.Outcome = job.ID(), backstage.Refused
		receipt.Err = &backstage.EnqueueError{ID: job.ID(), Task: job.Task(), Outcome: backstage.Refused, Err: err}
	}
	return receipt
}
