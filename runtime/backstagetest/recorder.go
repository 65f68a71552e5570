package backstagetest

import (
	"context"
	"errors"
	"sync"

	backstage "github.com/backstage-go/backstage/runtime"
	"google.golang.org/protobuf/proto"
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
// As with a client, one invalid job of a batch refuses all of it.
func (r *Recorder) Enqueue(_ context.Context, jobs ...backstage.Job) ([]backstage.Receipt, error) {
	receipts := make([]backstage.Receipt, len(jobs))
	errs := make([]error, len(jobs))
	answer := r.receipt
	for _, job := range jobs {
		if invalid(job) != nil {
			answer = refuse
		}
	}
	for i, job := range jobs {
		receipts[i] = answer(job)
		errs[i] = receipts[i].Err
		if errs[i] == nil {
			r.record(job)
		}
	}
	return receipts, errors.Join(errs...)
}

func (r *Recorder) record(job backstage.Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs = append(r.jobs, job)
}

// Check finds nothing missing.
func (r *Recorder) Check(...backstage.Needs) error { return nil }

// Answer lets the recorder answer later jobs as f says: with a duplicate's
// receipt, or with an error. An error is put into a *backstage.EnqueueError that
// says that the job is not stored; one that is such an error already stays as it
// is, and may say that the outcome is unknown. A job with an error is not recorded.
// A nil f answers that jobs are stored.
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
	r.mu.Lock()
	answer := r.answer
	r.mu.Unlock()
	if answer == nil {
		return backstage.Receipt{ID: job.ID(), Outcome: backstage.Stored}
	}
	receipt, err := answer(job) // which may look at what was recorded
	if err != nil {
		return failed(job, err)
	}
	return receipt
}

var errOther = errors.New("not sent, because another job of the batch is invalid")

// refuse is the receipt of a job that is invalid, or beside one that is.
func refuse(job backstage.Job) backstage.Receipt {
	if err := invalid(job); err != nil {
		return failed(job, err)
	}
	return failed(job, errOther)
}

func failed(job backstage.Job, err error) backstage.Receipt {
	var why *backstage.EnqueueError
	if !errors.As(err, &why) {
		why = &backstage.EnqueueError{ID: job.ID(), Task: job.Task(), Outcome: backstage.Refused, Err: err}
	}
	return backstage.Receipt{ID: job.ID(), Outcome: why.Outcome, Err: why}
}

// invalid returns why a client would not store a job, whatever its provider.
func invalid(job backstage.Job) error {
	if err := job.Err(); err != nil {
		return err
	}
	if size := proto.Size(job.Message()); size > backstage.DefaultPayloadLimit {
		return &backstage.TooLargeError{Task: job.Task(), Size: size, Limit: backstage.DefaultPayloadLimit}
	}
	return nil
}
