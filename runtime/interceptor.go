package backstage

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/backstage-go/backstage/runtime/provider"
)

// EnqueueFunc stores jobs, as Enqueuer.Enqueue does.
type EnqueueFunc func(ctx context.Context, jobs []Job) ([]Receipt, error)

// EnqueueInterceptor is code around every enqueue of a client. It may change the
// jobs (Job.With), add to ctx, or return without calling next; it then returns a
// receipt for each job. Next jobs of a chain do not pass through it.
type EnqueueInterceptor func(next EnqueueFunc) EnqueueFunc

// HandleFunc runs a job. The error says what is to become of it, as that of a
// handler does.
type HandleFunc func(ctx context.Context, run *Run) error

// Interceptor is code around the handlers of a worker or of one task. Those of
// the worker are outside those of the task, and the first of a list is outside
// the second. It may return without calling next.
type Interceptor func(next HandleFunc) HandleFunc

// Guard returns an interceptor that asks, before the handler, whether the job is
// still to be run. A check that returns Skip ends the job, names the guard in the
// event, and keeps the guards inside it from being asked; any other error ends
// the run as the handler's would.
func Guard(name string, check func(ctx context.Context, run *Run) error) Interceptor {
	return func(next HandleFunc) HandleFunc {
		return func(ctx context.Context, run *Run) error {
			err := check(ctx, run)
			if err == nil {
				return next(ctx, run)
			}
			var skip *skipError
			if errors.As(err, &skip) {
				return &skipError{reason: skip.reason, guard: name}
			}
			return err
		}
	}
}

// Run is one start of a job's handler, as interceptors see it.
type Run struct {
	job         *provider.Job
	worker      string
	maxAttempts int
	message     proto.Message
	next        Next
}

// Info returns what is known of the job.
func (r *Run) Info() Info { return infoOf(r.job, r.worker, r.maxAttempts) }

// Message returns the decoded payload.
func (r *Run) Message() proto.Message { return r.message }

// Next returns the next jobs that the handler has recorded so far, in its last call.
func (r *Run) Next() []Job { return Taken(&r.next) }
